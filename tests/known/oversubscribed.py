"""Loader workers and the loop want four threads each on every operator: far more than two cores have.

    python oversubscribed.py [THREADS WORKERS]

With 1 thread and no worker the same loop has its cores for itself. A larger machine needs more threads.
"""

import os
import sys

import torch
from torch import nn

BATCH, STEPS = 16, 60


class Multiplied(torch.utils.data.Dataset):
    """Samples that are worked out by small products of matrices."""

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        x = torch.full((48, 48), index / len(self))
        for _ in range(40):
            x = torch.tanh(x @ x)
        return x.flatten(), index % 10


def threads_of(wanted):
    """What each worker is given at its start."""
    return lambda _worker: torch.set_num_threads(wanted)


if __name__ == "__main__":
    threads, workers = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (4, os.cpu_count() or 1)
    torch.set_num_threads(threads)
    model = nn.Sequential(nn.Linear(48 * 48, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for x, y in torch.utils.data.DataLoader(Multiplied(), batch_size=BATCH, num_workers=workers,
                                            worker_init_fn=threads_of(threads)):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
