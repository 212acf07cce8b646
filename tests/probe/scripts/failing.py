"""Makes mistakes in every place that the probe stands in, and prints what a user would read of each."""

import traceback
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Broken(Exception):
    """An exception whose attributes cannot be set."""

    index: int


class Bad(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise Broken(index)
        return torch.ones(4)


def mistakes(model, inner):
    yield lambda: model(torch.ones(2, 3))
    yield lambda: inner(torch.ones(2, 3))
    yield lambda: list(torch.utils.data.DataLoader(Bad(), batch_size=2))
    yield lambda: model(torch.ones(2, 4)).backward()
    yield lambda: torch.autograd.grad(torch.ones(1), [torch.ones(1)])
    yield lambda: torch.compile(model, mode="no such mode")
    yield lambda: torch.utils.data.DataLoader([], batch_size=-1)


def main():
    inner = nn.Sequential(nn.Linear(4, 4))
    model = nn.Sequential(inner, nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):  # while the probe looks for the model, and when it has found it
        for mistake in mistakes(model, inner):
            try:
                mistake()
            except Exception:
                print(traceback.format_exc())
        for batch in torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()


main()
