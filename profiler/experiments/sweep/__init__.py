"""Sweeps: many settings measured in rounds, so that drift of the machine hits all alike."""
