"""StepScope without a window: record, store, analyse, report. Imports neither Qt nor torch."""
