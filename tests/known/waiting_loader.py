"""The loader waits 3 ms for each sample, as for storage; the loop waits for it 93 % of its time.

    python waiting_loader.py [WORKERS]

Batches of 16, in the loop's own thread unless workers are asked for. Many help, also where there are
few cores: a wait takes none.
"""

import sys
import time

import torch
from torch import nn

BATCH, STEPS = 16, 60


class Waiting(torch.utils.data.Dataset):
    """Samples that arrive 3 ms after they are asked for."""

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.full((256,), index / len(self)), index % 10


if __name__ == "__main__":
    torch.set_num_threads(1)
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in torch.utils.data.DataLoader(Waiting(), batch_size=BATCH, num_workers=workers):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
