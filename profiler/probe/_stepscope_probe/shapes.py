"""The shapes of training batches, by their first tensor: how many there are, and when a new one comes."""

import json
import time

import torch

from .parts import parts_of

_MOST = 256  # shapes that are told apart
_TOLD_NS = 1_000_000_000  # between two summaries


class Shapes:
    name = "shapes"

    def __init__(self):
        self._counts = {}
        self._last = None
        self._batches = self._changes = self._more = 0
        self._new = []  # times at which a shape came first
        self.at = 0  # when a summary may be told again
        self._told = 0

    def see(self, batch):
        """A batch of a training loader."""
        if type(batch) is list and batch and type(batch[0]) is torch.Tensor:
            shape = batch[0].shape
        else:
            shape = shape_of(batch)
            if shape is None:
                return
        self._batches += 1
        if shape != self._last:
            self._changes += self._last is not None
            self._last = shape
            if shape not in self._counts:
                if len(self._counts) >= _MOST:
                    self._more += 1
                    return
                self._counts[shape] = 0
                self._new.append(time.monotonic_ns())
        if shape in self._counts:
            self._counts[shape] += 1
        else:
            self._more += 1

    def records(self, now):
        new, self._new = self._new, []
        known = len(self._counts) - len(new)
        for i, t in enumerate(new):
            yield '["shape",%d,%d]\n' % (t, known + i + 1)
        if self._batches != self._told and now >= self.at:
            self.at, self._told = now + _TOLD_NS, self._batches
            yield json.dumps(["shapes", self._summary()]) + "\n"

    def _summary(self):
        """`more`: batches whose shape was not told apart any more."""
        common = max(self._counts, key=self._counts.get)
        by_size = sorted(self._counts, key=_size)
        return {"batches": self._batches, "changes": self._changes, "distinct": len(self._counts),
                "common": list(common), "common_batches": self._counts[common], "more": self._more,
                "smallest": list(by_size[0]), "largest": list(by_size[-1])}


def shape_of(batch, depth=3):
    """Of the first tensor with a dimension in a batch; None without one."""
    if isinstance(batch, torch.Tensor):
        return batch.shape if batch.dim() else None
    parts = parts_of(batch) if depth else None
    if parts is not None:
        for part in parts:
            shape = shape_of(part, depth - 1)
            if shape is not None:
                return shape
    return None


def _size(shape):
    size = 1
    for n in shape:
        size *= n
    return size
