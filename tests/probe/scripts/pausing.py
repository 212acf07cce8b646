"""A loop that collects garbage, saves and sleeps now and then."""

import gc
import json
import pickle
import time
from pathlib import Path

import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(4 * 60, 8))
objects = [[number] for number in range(200_000)]
large = torch.zeros(16 << 20)


def logged():
    time.sleep(0.4)  # sleep


for i, (x,) in enumerate(torch.utils.data.DataLoader(data, batch_size=4)):
    model(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if i == 20:
        gc.collect()  # collect
    if i == 30:
        torch.save(large, "large.pt")  # save
    if i == 40:
        logged()
    time.sleep(0.005)

source = Path(__file__).read_text().splitlines()
lines = {line.rpartition("  # ")[2]: number for number, line in enumerate(source, 1) if "  # " in line}
print(json.dumps({"lines": lines, "same": pickle.loads(pickle.dumps(torch.save)) is torch.save}))
