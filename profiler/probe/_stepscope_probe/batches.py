"""How large training batches are, and what the loop pays for one that a worker has ready."""

import json
import time
from itertools import islice

import torch

from .parts import parts_of

EVERY = 7  # fetches; batches of 2, 4, 8 or 16 workers come in bursts, which are no multiple of 7
_TOLD_NS = 1_000_000_000  # between two summaries
_PARTS = 64  # of a list that are looked at


class Batches:
    name = "batches"

    def __init__(self):
        self._asked = self._ready = self._ready_ns = self._since = 0
        self._batches = self._tensors = self._arrays = 0
        self.at = self._told = 0

    def asked(self, iterator):
        """The loop is about to take a batch from this iterator of a DataLoader."""
        self._since = 0
        tasks = getattr(iterator, "_task_info", None)
        if tasks is None:
            return  # no workers
        try:
            told = tasks.get(iterator._rcvd_idx, ())
            # A batch that came before its turn waits with its task. Of several in the queue any may be next:
            # it is surely there when all are but the one that was asked for last.
            if len(told) == 2 or iterator._tasks_outstanding - iterator._data_queue.qsize() <= 1:
                self._since = time.monotonic_ns()
            self._asked += 1
        except Exception:  # another version of torch keeps them otherwise: then it is not known
            pass

    def got(self, batch):
        """The batch that came."""
        if self._since:
            self._ready += 1
            self._ready_ns += time.monotonic_ns() - self._since
            self._since = 0
        self._batches += 1
        tensors, arrays = sizes(batch)
        self._tensors += tensors
        self._arrays += arrays

    def records(self, now):
        if self._batches != self._told and now >= self.at:
            self.at, self._told = now + _TOLD_NS, self._batches
            yield json.dumps(["batches", {
                "asked": self._asked, "ready": self._ready, "ready_ns": self._ready_ns // max(1, self._ready),
                "tensor_bytes": self._tensors // self._batches,
                "array_bytes": self._arrays // self._batches}]) + "\n"


def sizes(batch, depth=3):
    """(bytes of tensors, bytes of other arrays) in a batch. Workers share the memory of the first alone."""
    if isinstance(batch, torch.Tensor):
        return batch.numel() * batch.element_size(), 0
    parts = parts_of(batch)
    if parts is None:
        size = getattr(batch, "nbytes", 0)
        return 0, size if isinstance(size, int) else 0
    found = [sizes(part, depth - 1) for part in islice(parts, _PARTS)] if depth else []
    return sum(size for size, _ in found), sum(size for _, size in found)
