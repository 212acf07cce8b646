"""Loops of several kinds, by the names given. Says what each got, and how many samples were loaded for it."""

import json
import queue
import sys
import threading
import time
from collections import namedtuple

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

ASKED = []  # samples that this process has loaded
Pair = namedtuple("Pair", "x y")


class Numbers(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        ASKED.append(i)
        time.sleep(0.002)
        return torch.full((4,), float(i)), i % 2


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        for i in range(self.n):
            ASKED.append(i)
            yield torch.full((4,), float(i)), i % 2


class Counted(Stream):
    def __len__(self):
        return self.n


class Batch:
    """A batch of a user's own making."""

    def __init__(self, x, y):
        self.x, self.y, self.names = x, y, ["a"] * len(x)


class Marked(torch.Tensor):
    """A class of tensors with something of its own."""


def own(items):
    x = torch.stack([x for x, _ in items]).as_subclass(Marked)
    x.kind = "marked"
    return Batch(x, torch.tensor([y for _, y in items]))


def named(items):
    return {"pair": Pair(torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])), "id": 7}


model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
got = []


def step(x, y):
    got.append(x[:, 0].tolist())
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def plain(workers=0, **more):
    """Three epochs, each followed by an evaluation; batches are written into."""
    train = DataLoader(Numbers(10), 2, num_workers=workers, **more)
    valid = DataLoader(Numbers(6), 2)
    seen, starts = [], []
    for _ in range(3):
        for x, y in train:
            step(x, y)
            x += 100
        starts.append(len(got))
        with torch.no_grad():
            for x, _ in valid:
                seen.append(x[:, 0].tolist())
                model(x)
    return {"seen": seen, "ends": starts}


def by_hand():
    """The iterator is held by the loop."""
    loader = DataLoader(Numbers(12), 3, collate_fn=named)
    iterator = iter(loader)
    for _ in range(10):
        try:
            batch = next(iterator)
        except StopIteration:
            iterator = iter(loader)
            batch = next(iterator)
        pair = batch.pop("pair")
        step(pair.x, pair.y)
        assert batch.pop("id") == 7


def stream(kind=Counted):
    kinds = set()
    for _epoch in range(2):
        for batch in DataLoader(kind(12), 4, collate_fn=own):
            kinds.add((type(batch.x).__name__, getattr(batch.x, "kind", None), type(batch).__name__))
            step(batch.x.as_subclass(torch.Tensor), batch.y)
            batch.names.clear()
            if len(got) >= 20:
                break
    return {"kinds": sorted(kinds)}


def inference():
    with torch.inference_mode():
        for _ in range(2):
            for x, _ in DataLoader(Numbers(8), 2):
                got.append(x[:, 0].tolist())
                model(x)
                x.zero_()


def whole():
    """A scaler, a closure and a gradient that is asked for."""
    scaler = torch.amp.GradScaler("cpu")
    second = torch.optim.LBFGS(model.parameters(), max_iter=1)
    weights, asked = [], 0
    for x, y in DataLoader(Numbers(20), 2):
        x.requires_grad_()
        loss = nn.functional.cross_entropy(model(x), y)
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        asked += bool(gradient.abs().sum() > 0)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        second.step(lambda x=x, y=y: nn.functional.cross_entropy(model(x), y))
        weights.append(float(model[0].weight.sum()))
    return {"gradients": asked, "weights": len(set(weights))}


def own_settings():
    """The program sets its own switches before its loop."""
    torch.set_num_threads(3)
    torch.set_float32_matmul_precision("highest")
    for x, y in DataLoader(Numbers(6), 2):
        step(x, y)
    return {"threads": torch.get_num_threads(), "precision": torch.get_float32_matmul_precision()}


def workers():
    return plain(2, persistent_workers=True)


def fresh_workers():
    return plain(2)


class Repeating(DataLoader):
    """Its workers go on over epochs: the sampler has no end, and its own iteration one."""

    class Again:
        def __init__(self, sampler):
            self.sampler = sampler

        def __iter__(self):
            while True:
                yield from iter(self.sampler)

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        object.__setattr__(self, "batch_sampler", self.Again(self.batch_sampler))
        self.batches = super().__iter__()

    def __iter__(self):
        for _ in range(len(self.batch_sampler.sampler)):
            yield next(self.batches)


def repeating():
    loader = Repeating(Numbers(10), 2, num_workers=1)
    for _ in range(3):
        for x, y in loader:
            step(x, y)


def in_a_thread():
    """A thread of the program's own reads the loader, and waits while the loop makes its step."""
    batches, done = queue.Queue(), threading.Semaphore(0)

    def read():
        for batch in DataLoader(Numbers(12), 2):
            batches.put(batch)
            done.acquire()
        batches.put(None)

    thread = threading.Thread(target=read)
    thread.start()
    while (batch := batches.get()) is not None:
        step(*batch)
        done.release()
    thread.join()


def endless():
    return stream(Stream)


def copied():
    """Copies of the batch to another type stand for copies to a GPU, of which there may be none."""
    from _stepscope_probe import kept_on_device

    kept_on_device._goes_to_gpu = lambda args, kwargs: torch.float64 in args
    hook = sys.modules["_stepscope_probe"]._probe.interventions[0]
    hook.where = "copies"
    hook.copies.enable()
    places = []
    for k, (x, y) in enumerate(DataLoader(Numbers(16), 2)):
        moved = x.to(torch.float64, non_blocking=True)
        places.append(moved.data_ptr())
        assert moved[:, 0].tolist() == ([0.0, 1.0] if k else x[:, 0].tolist()) and y.tolist() == [0, 1]
        assert x.to(torch.float32) is x and x[:1].to(torch.float64).data_ptr() != moved.data_ptr()
        step(moved.float(), y)
        if k == 4:
            moved.zero_()
    return {"same": [places[k] == places[k - 1] for k in range(2, len(places))], "made": hook.copies.made}


if __name__ == "__main__":
    said = {}
    for name in sys.argv[1:]:
        del got[:], ASKED[:]
        said[name] = dict(globals()[name]() or {}, got=list(got), asked=len(ASKED))
    print(json.dumps(said))
