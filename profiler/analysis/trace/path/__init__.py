"""The critical path of a window."""
