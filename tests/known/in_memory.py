"""The data lies in memory and the loop computes: there is nothing to blame.

    python in_memory.py [WORKERS]

Without workers. With some, batches are handed from process to process for nothing.
"""

import sys

import torch
from torch import nn

BATCH, STEPS = 64, 60

if __name__ == "__main__":
    torch.set_num_threads(1)
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    size = BATCH * STEPS
    data = torch.utils.data.TensorDataset(torch.randn(size, 512), torch.randint(0, 10, (size,)))
    hidden = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), *hidden, nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=workers):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
