"""Readers of what other tools left behind: one folder a format, each with `sniff` and `load`."""
