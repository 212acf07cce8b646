"""The measured throughput of each stage alone, beside the run: which ceiling does it lean on."""
