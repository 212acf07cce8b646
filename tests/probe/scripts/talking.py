"""Reads its input, shows progress with carriage returns, warns, and ends with an exception in the loop."""

import sys
import warnings

import torch
from common import Net, Slow

name = input("name? ")
warnings.warn(f"hello {name}", stacklevel=1)
model = Net(0.001, 0.001)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, _) in enumerate(torch.utils.data.DataLoader(Slow(100), batch_size=2)):
    model(x).sum().backward()
    optimizer.step()
    sys.stderr.write(f"\r{i} {sorted(k for k in vars(model) if not k.startswith('_'))}")
    if i == 9:
        raise RuntimeError("out of coffee")
