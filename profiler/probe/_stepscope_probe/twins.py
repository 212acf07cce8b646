"""Iterable data that each worker gives again as a whole, for nobody has divided it among them."""

from itertools import islice

import torch

from .parts import parts_of

ROUNDS = 2  # batches of each worker that are compared; one alone may be like another's by chance
_VALUES = 64  # of a tensor


class Twins:
    """Looks at the first batches of an iterator of several workers, which come in turn."""

    def __init__(self, workers):
        self.workers = workers
        self._seen = []

    @classmethod
    def of(cls, iterator):
        """One for this iterator; None where workers cannot give the same by mistake, or come in any order."""
        from torch.utils.data import IterableDataset

        workers = iterator._num_workers
        if workers < 2 or not isinstance(iterator._dataset, IterableDataset):
            return None
        return cls(workers) if getattr(iterator, "_in_order", True) else None

    def see(self, batch):
        """A batch has come. Returns whether the data is duplicated; None: the next must be seen too."""
        self._seen.append(fingerprint(batch))
        if self._seen[-1] is None:
            return False
        if len(self._seen) < ROUNDS * self.workers:
            return None
        rounds = [self._seen[n:n + self.workers] for n in range(0, len(self._seen), self.workers)]
        # data that is always the same says nothing of who gave it
        return all(len(set(found)) == 1 for found in rounds) and len({found[0] for found in rounds}) == ROUNDS


def fingerprint(batch, depth=3):
    """What tells batches apart: values of their first tensors, or strings. None where nothing does."""
    if isinstance(batch, torch.Tensor):
        if batch.device.type != "cpu" or not batch.numel():
            return None
        flat = batch.detach().reshape(-1)
        return tuple(batch.shape), tuple(flat[::max(1, flat.numel() // _VALUES)][:_VALUES].tolist())
    if isinstance(batch, (str, bytes, int, float)):
        return batch
    parts = parts_of(batch) if depth else None
    if parts is None:
        return None
    found = tuple(fingerprint(part, depth - 1) for part in islice(parts, 4))
    known = tuple(item for item in found if item is not None)
    return known or None
