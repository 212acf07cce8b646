"""A small model, data that takes a known time to load, and timers around the stages of a loop."""

import json
import time

import torch
from torch import nn


class Slow(torch.utils.data.Dataset):
    """`n` samples, each of which takes `seconds` to load."""

    def __init__(self, n, seconds=0.001):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.full((8,), float(i)), i % 2


class Sleeping(torch.autograd.Function):
    """Identity that sleeps in forward and in backward."""

    @staticmethod
    def forward(ctx, x, forward, backward):
        ctx.backward_seconds = backward
        time.sleep(forward)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.backward_seconds)
        return grad, None, None


class Net(nn.Module):
    """Linear layers and a sleep of `forward` and `backward` seconds."""

    def __init__(self, forward=0.006, backward=0.008, out=2):
        super().__init__()
        self.seconds = forward, backward
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, out))

    def forward(self, x):
        return Sleeping.apply(self.layers(x), *self.seconds)


class SlowSGD(torch.optim.SGD):
    """SGD whose step sleeps 4 ms."""

    def step(self, closure=None):
        time.sleep(0.004)
        return super().step(closure)


class Timers:
    """The script's own account: ns by stage and step."""

    def __init__(self):
        self.steps = []

    def begin(self):
        self.steps.append({"step": 0, "data": 0, "forward": 0, "backward": 0, "optimizer": 0})
        self.t0 = self.t = time.monotonic_ns()

    def end(self, stage):
        now = time.monotonic_ns()
        if stage is not None:
            self.steps[-1][stage] += now - self.t
        self.t = now
        self.steps[-1]["step"] = now - self.t0

    def drop(self):
        self.steps.pop()

    def say(self, **more):
        print(json.dumps(dict(more, steps=self.steps)), flush=True)


def train_step(model, optimizer, x, y, timers):
    out = model(x)
    timers.end("forward")
    loss = nn.functional.cross_entropy(out, y)
    timers.end(None)
    loss.backward()
    timers.end("backward")
    optimizer.step()
    timers.end("optimizer")
    optimizer.zero_grad()
    time.sleep(0.003)
    timers.end(None)


def timed(loader, timers):
    """The loader's batches, with the wait for each on the timers."""
    iterator = iter(loader)
    while True:
        timers.begin()
        try:
            batch = next(iterator)
        except StopIteration:
            timers.drop()
            return
        timers.end("data")
        yield batch
