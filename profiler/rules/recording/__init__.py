"""What a recording says without its trace windows: one file for each cause with its finding."""
