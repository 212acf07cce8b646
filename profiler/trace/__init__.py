"""A torch.profiler trace as arrays: what importers make, and analysis and replay read."""
