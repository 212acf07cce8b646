"""GradScaler that skips a step, gradients accumulated over four batches, a loader made anew each epoch."""

import json

import torch
from common import Net, Slow
from torch import nn

model = Net(0.001, 0.001)
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
data = Slow(32)
batches = calls = skipped = 0
for epoch in range(2):
    for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=2)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).float(), y) / 4
        if epoch == 0 and i == 7:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        batches += 1
        if i % 4 == 3:
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            skipped += scaler.get_scale() < before
            calls += scaler.get_scale() >= before
print(json.dumps({"steps": batches, "calls": calls, "skipped": skipped}))
