"""Confusion matrix: what the diagnosis says of runs whose answer is known."""
