"""A training loop without a loader, then an evaluation and an inference of it."""

import json

import torch
from common import Net
from torch import nn

model = Net(0.005, 0.005)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.zeros(4).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    for _ in range(5):
        model(torch.randn(4, 8))
print(json.dumps({"steps": 10, "evaluations": 5}))
