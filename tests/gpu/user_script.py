"""A training loop as users write it, that times itself. Prints one JSON line last.

    user_script.py [waits|ahead] [DEVICE]

`waits` reads the loss in each step, so that the device is never behind; `ahead` reads nothing and
copies without waiting, so that the host runs ahead of the device as far as it may. The checks
record both and compare what the probe says with what the loop measured.
"""

import json
import sys
import time

import torch
from torch import nn

AHEAD = "ahead" in sys.argv[1:2]
device = torch.device((sys.argv[2:] or ["cuda"])[0])
CUDA = device.type == "cuda"
STEPS, BATCH, WIDTH = (80, 512, 4096) if CUDA else (30, 8, 64)
torch.manual_seed(0)
if not CUDA:
    torch.set_num_threads(1)  # a rehearsal, beside others perhaps
model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.batch = torch.rand(BATCH, WIDTH)

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, indices):
        if not AHEAD:
            time.sleep(0.004)
        return self.batch


class Mark:
    """A point of the loop on the device's axis, where there is one."""

    def __init__(self):
        self.host = time.perf_counter_ns()
        self.event = torch.cuda.Event(enable_timing=True) if CUDA else None
        if CUDA:
            self.event.record()

    def ms_to(self, other):
        return self.event.elapsed_time(other.event) if CUDA else None

    def lag_ms(self, zero):
        """How long after the host recorded it the device completed it; `zero` was waited for."""
        return zero.ms_to(self) - (self.host - zero.host) / 1e6 if CUDA else None


def synchronised():
    if CUDA:
        torch.cuda.synchronize()
    mark = Mark()
    if CUDA:
        mark.event.synchronize()
    return mark


sampler = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(range(STEPS * BATCH)), BATCH, True)
loader = torch.utils.data.DataLoader(Data(), sampler=sampler, batch_size=None, pin_memory=AHEAD and CUDA)
rows, marks = [], []
batches = iter(loader)
zero = synchronised()
for _ in range(STEPS):
    mark = [Mark()]
    t = [time.perf_counter_ns()]
    batch = next(batches)
    t.append(time.perf_counter_ns())
    batch = batch.to(device, non_blocking=AHEAD)
    t.append(time.perf_counter_ns())
    mark.append(Mark())
    out = model(batch)
    t.append(time.perf_counter_ns())
    mark.append(Mark())
    loss = out.square().mean()
    t.append(time.perf_counter_ns())
    loss.backward()
    t.append(time.perf_counter_ns())
    mark.append(Mark())
    optimizer.step()
    t.append(time.perf_counter_ns())
    mark.append(Mark())
    optimizer.zero_grad()
    if not AHEAD:
        loss.item()
    names = ("data", "h2d", "forward", "loss", "backward", "optimizer")
    rows.append(dict(zip(names, (b - a for a, b in zip(t, t[1:])))))
    marks.append(mark)
if CUDA:
    torch.cuda.synchronize()


def median(values):
    """After the warm-up; None where nothing was measured."""
    values = sorted(v for v in values[20:] if v is not None)
    return values[len(values) // 2] if values else None


stages = ("forward", "backward", "optimizer")
device_ms = [dict(zip(stages, (a.ms_to(b) for a, b in zip(m[1:], m[2:])))) for m in marks]
print(json.dumps({
    "steps": len(rows),
    "step_ms": median([(b[0].host - a[0].host) / 1e6 for a, b in zip(marks, marks[1:])]),
    "host_ms": {k: median([r[k] for r in rows]) / 1e6 for k in rows[0]},
    "device_ms": {k: median([d[k] for d in device_ms]) for k in stages},
    "lag_ms": median([m[0].lag_ms(zero) for m in marks]),
    "allocated": torch.cuda.memory_allocated() if CUDA else 0,
}))
