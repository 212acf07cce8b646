"""Smallest and largest value of groups of samples, in levels of 16, built while samples come."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

FANOUT = 16
TOP = 6  # 16**6 samples: 19 days at 10 Hz in one entry
FULL = 128  # entries of a level that make a block


def _whole() -> array[int]:
    return array("q")


def _floats() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Entries:
    """Entries of one level that are not in a block yet, as columns: times in us, values.

    Arrays: the higher levels of hundreds of tracks wait for hours, and lists take five times as much.
    """

    first: int = 0  # number of the first one in its level
    t0: array[int] = field(default_factory=_whole)
    t1: array[int] = field(default_factory=_whole)
    low: array[float] = field(default_factory=_floats)
    high: array[float] = field(default_factory=_floats)

    def __len__(self) -> int:
        return len(self.t0)

    def add(self, t0: Sequence[int], t1: Sequence[int], low: Sequence[float], high: Sequence[float]) -> None:
        self.t0.extend(t0)
        self.t1.extend(t1)
        self.low.extend(low)
        self.high.extend(high)

    def take(self) -> Entries:
        """All entries, out of here."""
        taken = Entries(self.first, self.t0, self.t1, self.low, self.high)
        self.first += len(self.t0)
        self.t0, self.t1, self.low, self.high = _whole(), _whole(), _floats(), _floats()
        return taken


class Pyramid:
    """The levels of one track from 1 up.

    `_rest[k]` holds the entries of level k that do not fill a group of level k + 1
    yet (level 0: samples), `_ready[k]` those of level k that wait for their block.
    """

    def __init__(self) -> None:
        self._rest = [Entries()]
        self._ready = [Entries()]  # of level 0: never used

    def add(self, times: Sequence[int], values: Sequence[float]) -> None:
        """Samples: times in us, finite values."""
        self._rest[0].add(times, times, values, values)
        level = 0
        while level < TOP and len(self._rest[level]) >= FANOUT:
            groups = _groups(self._rest[level])
            level += 1
            if level == len(self._rest):
                self._rest.append(Entries())
                self._ready.append(Entries())
            self._rest[level].add(*groups)
            self._ready[level].add(*groups)

    @classmethod
    def of(cls, rest: bytes) -> Pyramid:
        """The one that told its `rest`."""
        pyramid = cls()
        pyramid._rest, pyramid._ready = [], []
        whole, floats, at = array("q", rest), array("d", rest), 0
        while at < len(whole):
            first, n = whole[at:at + 2]
            begins = range(at + 2, at + 2 + 4 * n, n) if n else [at + 2] * 4
            t0, t1 = (whole[i:i + n] for i in begins[:2])
            low, high = (floats[i:i + n] for i in begins[2:])
            pyramid._rest.append(Entries(0, t0, t1, low, high))
            pyramid._ready.append(Entries(first))
            at += 2 + 4 * n
        return pyramid

    def rest(self) -> bytes:
        """Small: what it must still know once all its blocks have been taken."""
        return b"".join(array("q", (ready.first, len(rest), *rest.t0, *rest.t1)).tobytes()
                        + array("d", (*rest.low, *rest.high)).tobytes()
                        for rest, ready in zip(self._rest, self._ready, strict=True))

    def blocks(self, all_of_them: bool = False) -> Iterator[tuple[int, Entries]]:
        """(level, entries) that are due as a block; they are handed over."""
        for level, ready in enumerate(self._ready):
            if len(ready) >= FULL or (all_of_them and len(ready)):
                yield level, ready.take()


def _groups(rest: Entries) -> tuple[list[int], list[int], list[float], list[float]]:
    """Columns of the full groups in `rest`, which keeps what is left over."""
    full = len(rest) - len(rest) % FANOUT
    starts = range(0, full, FANOUT)
    t0, t1, low, high = rest.t0.tolist(), rest.t1.tolist(), rest.low.tolist(), rest.high.tolist()
    columns = (
        [min(t0[i : i + FANOUT]) for i in starts],
        [max(t1[i : i + FANOUT]) for i in starts],
        [min(low[i : i + FANOUT]) for i in starts],
        [max(high[i : i + FANOUT]) for i in starts],
    )
    for column in (rest.t0, rest.t1, rest.low, rest.high):
        del column[:full]
    return columns
