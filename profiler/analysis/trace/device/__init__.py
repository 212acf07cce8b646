"""What ran on the devices: kernels, copies, how they were launched, queued and overlapped."""
