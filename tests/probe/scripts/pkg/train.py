"""`python -m pkg.train --data rel/path` with spawned workers and a spawned process; exits with 3."""

import argparse
import multiprocessing
import sys
from pathlib import Path

import torch
from torch import nn


class Lines(torch.utils.data.Dataset):
    def __init__(self, path):
        self.lines = Path(path).read_text().split()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        # a module in a worker is a transform, not a model
        return torch.nn.functional.one_hot(torch.tensor(int(self.lines[i])), 8).float()


def beside(queue):
    queue.put(sum(range(10)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    args = parser.parse_args()
    queue = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(target=beside, args=(queue,))
    process.start()
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Lines(args.data), batch_size=2, num_workers=1,
                                         multiprocessing_context="spawn", persistent_workers=True)
    steps = 0
    for _ in range(2):
        for x in loader:
            model(x).mean().backward()
            optimizer.step()
            steps += 1
            sys.stdout.write(f"\rstep {steps}")
            sys.stdout.flush()
    answer = queue.get()
    process.join()
    print(f"\nanswer {answer} argv {sys.argv[1:]}")
    sys.exit(3)


if __name__ == "__main__":
    main()
