"""Batches of five sizes into a compiled model under autocast: each size is compiled anew."""

import torch
from torch import nn

torch._dynamo.config.recompile_limit = 64
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
call = torch.compile(model, backend="eager", dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Cut(torch.utils.data.IterableDataset):
    """Images of 8 to 12 pixels."""

    def __iter__(self):
        for k in range(40):
            yield torch.randn(2, 3, 8 + k % 5, 8)


for _ in range(2):
    for x in torch.utils.data.DataLoader(Cut(), batch_size=None):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = call(x).float().mean()
        loss.backward()
        optimizer.step()
