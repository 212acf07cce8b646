"""A whole training step handed to the compiler."""

import json

import torch
from torch import nn

torch._dynamo.config.error_on_recompile = True
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())


@torch.compile(backend="aot_eager")
def step(x):
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


data = torch.utils.data.TensorDataset(torch.randn(40, 8))
for (x,) in torch.utils.data.DataLoader(data, batch_size=4):
    loss = step(x)
print(json.dumps({"breaks": sum(torch._dynamo.utils.counters["graph_break"].values()), "loss": loss.item()}))
