"""Breaks the probe's hooks one after the other; the loop must not notice."""

import json
import sys

import torch
from torch import nn

probe = getattr(sys.modules.get("_stepscope_probe"), "_probe", None)


def broken(*args, **kwargs):
    raise ZeroDivisionError("sabotage")


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(48, 8))
for i, (x,) in enumerate(torch.utils.data.DataLoader(data, batch_size=4)):
    if probe is not None:
        probe.loop.tape.stop()
        for at, owner, name in ((3, probe.loop, "optimizer_enter"), (4, probe.loop, "backward_enter"),
                                (5, probe.window, "_due"), (5, probe.loop.tape, "_play"),
                                (6, probe.loop, "forward_enter"), (7, probe.loop, "fetch_exit"),
                                (8, probe.spool, "write")):
            if i == at:
                kept = vars(type(owner))[name]
                setattr(type(owner), name, broken)
            if i == 9 and name == "write":
                setattr(type(owner), name, kept)
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(json.dumps({"loss": loss.item()}))
