"""Memory over time, and what was behind its peak."""
