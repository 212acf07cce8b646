"""The loader computes 3 ms for each sample, as for decoding; the loop waits for it 93 % of its time.

    python computing_loader.py [WORKERS]

Batches of 16, in the loop's own thread unless workers are asked for. No more workers help than there
are cores: they have to share them.
"""

import sys
import time

import torch
from torch import nn

BATCH, STEPS = 16, 60


class Computing(torch.utils.data.Dataset):
    """Samples that take 3 ms of work."""

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        begin = time.thread_time()
        while time.thread_time() - begin < 0.003:
            pass
        return torch.full((256,), index / len(self)), index % 10


if __name__ == "__main__":
    torch.set_num_threads(1)
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in torch.utils.data.DataLoader(Computing(), batch_size=BATCH, num_workers=workers):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
