"""What a trace says: the verdict of definitions, section 5, and one file for each cause with its finding."""
