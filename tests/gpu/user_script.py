"""A training loop as users write it, that times itself. Prints one JSON line last.

The check records it and compares what the probe says with what the loop measured.
"""

import json
import time

import torch
from torch import nn

STEPS, BATCH = 80, 256
device = torch.device("cuda")
torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(4096, 4096), nn.GELU())]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, i):
        if i % BATCH == 0:
            time.sleep(0.004)
        return torch.full((4096,), i / (STEPS * BATCH))


def marks(n):
    return [torch.cuda.Event(enable_timing=True) for _ in range(n)]


rows, events = [], []
batches = iter(torch.utils.data.DataLoader(Data(), batch_size=BATCH))
for _ in range(STEPS):
    t = [time.perf_counter_ns()]
    batch = next(batches)
    t.append(time.perf_counter_ns())
    mark = marks(4)
    batch = batch.to(device)
    t.append(time.perf_counter_ns())
    mark[0].record()
    out = model(batch)
    t.append(time.perf_counter_ns())
    mark[1].record()
    loss = out.square().mean()
    t.append(time.perf_counter_ns())
    loss.backward()
    t.append(time.perf_counter_ns())
    mark[2].record()
    optimizer.step()
    t.append(time.perf_counter_ns())
    mark[3].record()
    optimizer.zero_grad()
    loss.item()
    names = ("data", "h2d", "forward", "loss", "backward", "optimizer")
    rows.append(dict(zip(names, (b - a for a, b in zip(t, t[1:])))))
    events.append(mark)
torch.cuda.synchronize()
device_ms = [dict(zip(("forward", "backward", "optimizer"), (a.elapsed_time(b) for a, b in zip(m, m[1:]))))
             for m in events]


def median(values):
    return sorted(values)[len(values) // 2]


print(json.dumps({
    "steps": len(rows),
    "host_ms": {k: median([r[k] for r in rows[20:]]) / 1e6 for k in rows[0]},
    "device_ms": {k: median([d[k] for d in device_ms[20:]]) for k in device_ms[0]},
    "allocated": torch.cuda.memory_allocated(),
}))
