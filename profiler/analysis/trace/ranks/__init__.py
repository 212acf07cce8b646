"""Communication of one process, and of several held against each other."""
