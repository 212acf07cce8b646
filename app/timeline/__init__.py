"""The timeline: lanes of spans on one clock. Pure parts on arrays, a helper process that reads, widgets."""
