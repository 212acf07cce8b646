"""How much is copied to the GPU, and from which memory: sums over all copies that the loop asked for."""

import json

_LOOKED_AT = 512  # copies that are asked whether their memory is pinned: a call of the driver


class Copies:
    """`see` takes each copy. Only while the methods of Tensor are ours."""

    name = "copies"

    def __init__(self):
        self._count = self._bytes = 0
        self._looked = self._pinned = self._waiting = 0  # bytes looked at, of them pinned, of them blocking
        self._left = _LOOKED_AT
        self._told = 0

    def see(self, source, args, kwargs):
        """A copy of `source`, which is in the host's memory, with the call's further arguments."""
        size = source.numel() * source.element_size()
        self._count += 1
        self._bytes += size
        if self._left > 0:
            self._left -= 1
            self._looked += size
            try:
                self._pinned += size if source.is_pinned() else 0
            except Exception:  # what pretends to be a tensor need not know
                self._looked, self._left = 0, 0
            if not (kwargs.get("non_blocking") or any(arg is True for arg in args)):
                self._waiting += size

    def records(self, now):
        if self._count == self._told:
            return
        self._told = self._count
        share = {"pinned": self._pinned / self._looked, "blocking": self._waiting / self._looked} \
            if self._looked else {}
        yield '["copies",%d,%d,%d,%s]\n' % (now, self._count, self._bytes, json.dumps(share))
