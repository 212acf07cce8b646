"""Questions to a trace: pure functions on its arrays. Definitions, sections 1, 3 and 8."""
