"""Models compiled without a graph break, before and after training; a step that would recompile fails."""

import json
import sys

import torch
from torch import nn

backend = sys.argv[1]
torch._dynamo.config.error_on_recompile = True


def net():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), inner, nn.Linear(8, 2))


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = net()

    def forward(self, x):
        return self.inner(x) * 2


def train(call, model, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.arange(8.0 * 4 * n).view(-1, 8) / 1000
    data = torch.utils.data.TensorDataset(x, torch.zeros(4 * n).long())
    for x, y in torch.utils.data.DataLoader(data, batch_size=4):
        loss = nn.functional.cross_entropy(call(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


said = {}
torch._dynamo.utils.counters.clear()
first = Own()


@torch.compile(backend=backend, fullgraph=True)
def hidden(x):
    return first(x)


said["hidden"] = train(hidden, first, 8)
model = Own()
said["module"] = train(torch.compile(model, backend=backend, fullgraph=True), model, 8)
model = Own()
said["eager"] = train(model, model, 8)
x = torch.ones(2, 8)
said["exported"] = torch.equal(torch.export.export(model, (x,)).module()(x), model(x))
said["scripted"] = torch.equal(torch.jit.script(model)(x), model(x))
said["traced"] = torch.equal(torch.fx.symbolic_trace(model)(x), model(x))
said["vmapped"] = torch.allclose(torch.vmap(model)(x), model(x))
said["later"] = train(torch.compile(model, backend=backend, fullgraph=True), model, 8)
model = Own()
model.compile(backend=backend, fullgraph=True)
said["in_place"] = train(model, model, 8)
model = net()
said["sequential"] = train(torch.compile(model, backend=backend, fullgraph=True), model, 8)
model = Own()
said["eager_again"] = train(model, model, 8)


@torch.compile(backend=backend, fullgraph=True)
def call(x):
    return model(x)


said["function"] = train(call, model, 8)
said["hidden_again"] = train(hidden, first, 8)
said["breaks"] = sum(torch._dynamo.utils.counters["graph_break"].values())
print(json.dumps(said))
