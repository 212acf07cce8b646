"""A loop with forked workers whose dataset runs a model, a forked pool, and a forked child that trains."""

import json
import multiprocessing
import os

import torch
from torch import nn


class Featured(torch.utils.data.Dataset):
    features = nn.Linear(8, 8)

    def __len__(self):
        return 24

    def __getitem__(self, i):
        return self.features(torch.full((8,), float(i))).detach()


def train(n, **settings):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i, x in enumerate(torch.utils.data.DataLoader(Featured(), batch_size=2, **settings)):
        if i == n:
            break
        model(x).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    train(4)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        train(5)
        raise SystemExit(0)
    _, status = os.waitpid(child, 0)
    train(12, num_workers=2, multiprocessing_context="fork")
    print(json.dumps({"pid": os.getpid(), "child": child, "status": status}))
