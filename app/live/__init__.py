"""The parts of the Live screen: what it asks of a run, and the widgets that show the answers."""
