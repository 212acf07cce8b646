"""Workers hand large batches over as arrays: each is copied through a pipe, and the loop waits for that.

    python array_batches.py [WORKERS]

The data lies in memory, there is next to no work for the two workers. Without any it is faster.
"""

import sys

import numpy as np
import torch
from torch import nn

BATCH, STEPS = 32, 60


class Images(torch.utils.data.Dataset):
    """Images in memory."""

    images = np.zeros((64, 3, 160, 160), np.float32)

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        return self.images[index % 64], index % 10


def arrays(samples):
    images, labels = zip(*samples, strict=True)
    return np.stack(images), np.array(labels)


if __name__ == "__main__":
    torch.set_num_threads(1)
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    model = nn.Sequential(nn.Conv2d(3, 8, 8, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(8, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Images(), batch_size=BATCH, num_workers=workers, collate_fn=arrays)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
