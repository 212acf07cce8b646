"""Samples on their way into blocks: per track, in memory, as long as the journal still has them too."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise

from profiler.run.codec import pack_block, pack_floats, pack_ints
from profiler.run.pyramid import Entries, Pyramid

LEAST = 256  # samples that are worth a block
LONGEST_SECONDS = 300.0  # after that a block is written with what there is
IDLE_SECONDS = 600.0  # after that a track without samples takes little memory: its process is gone
CALLS = 16  # that packing all tracks is spread over
MOST = 1 << 16  # samples in one block

BlockRow = tuple[int, int, int, int, int, int, bytes]  # track, level, first, n, t0_ns, t1_ns, data


class _Open:
    """The open block of one track."""

    __slots__ = ("first", "pyramid", "since", "times", "values")

    def __init__(self, first: int = 0, pyramid: Pyramid | None = None) -> None:
        self.times = array("q")  # us; an array takes a quarter of what a list and its numbers do
        self.values = array("d")
        self.first = first
        self.since = 0.0  # when the first of these samples came
        self.pyramid = Pyramid() if pyramid is None else pyramid


class OpenBlocks:
    """Takes samples that are in the journal, gives the rows that replace them."""

    def __init__(self) -> None:
        self._tracks: dict[int, _Open] = {}
        self._idle: dict[int, tuple[int, bytes]] = {}  # first, and what their pyramids must still know
        self._ended: set[int] = set()  # tracks that get no more samples
        self.rows: list[BlockRow] = []  # ready to be written; the caller clears it when they are
        self._queue: list[int] = []  # tracks that have not had their turn
        self.newest_us = -(1 << 62)

    def add(self, tracks: Sequence[int], times: Sequence[int], values: Sequence[float], now: float) -> None:
        """Samples as columns: times in us, finite values. `now` in seconds."""
        for track, time, value in zip(tracks, times, values, strict=True):
            block = self._tracks.get(track)
            if block is None:
                block = self._tracks[track] = self._woken(track)
            if not block.times:
                block.since = now
            block.times.append(time)
            block.values.append(value)
        self.newest_us = max(self.newest_us, max(times))

    def close(self, now: float, whole: bool) -> bool:
        """Turn open blocks into `rows`: all when `whole`, else those that are due, a few tracks a call.

        True when every track has had its turn. All at once would keep the threads that sample waiting.
        """
        if whole or not self._queue:
            self._queue = list(self._tracks)
        share = len(self._tracks) if whole else max(len(self._tracks) // CALLS, 4)
        turn, self._queue = self._queue[:share], self._queue[share:]
        for track in turn:
            block = self._tracks[track]
            count = len(block.times)
            if count and (whole or count >= LEAST or now - block.since >= LONGEST_SECONDS):
                for start in range(0, count, MOST):
                    self._sample_rows(track, block, slice(start, start + MOST))
                block.times, block.values = array("q"), array("d")
            ended = track in self._ended
            idle = not count and (ended or now - block.since >= IDLE_SECONDS)
            for level, entries in block.pyramid.blocks(all_of_them=whole or idle):
                self.rows.append(_group_row(track, level, entries))
            if idle:
                del self._tracks[track]
                self._ended.discard(track)
                if not ended:
                    self._idle[track] = block.first, block.pyramid.rest()
        return not self._queue

    def end(self, tracks: Sequence[int]) -> None:
        """These get no more samples: nothing of them is kept once their blocks are written."""
        for track in tracks:
            if self._idle.pop(track, None) is None and track in self._tracks:
                self._ended.add(track)

    def _woken(self, track: int) -> _Open:
        """A track that is new, or has samples again."""
        known = self._idle.pop(track, None)
        return _Open() if known is None else _Open(known[0], Pyramid.of(known[1]))

    def left(self) -> tuple[list[int], list[int], list[float]]:
        """Columns of the samples that are still open: what the journal must keep."""
        tracks: list[int] = []
        times: list[int] = []
        values: list[float] = []
        for track, block in self._tracks.items():
            tracks += [track] * len(block.times)
            times += block.times
            values += block.values
        return tracks, times, values

    def _sample_rows(self, track: int, block: _Open, part: slice) -> None:
        times, values = block.times[part].tolist(), block.values[part].tolist()
        if any(later < earlier for earlier, later in pairwise(times)):
            order = sorted(range(len(times)), key=times.__getitem__)
            times, values = [times[i] for i in order], [values[i] for i in order]
        data = pack_block([pack_ints(times), pack_floats(values)])
        self.rows.append((track, 0, block.first, len(times), times[0] * 1000, times[-1] * 1000, data))
        block.first += len(times)
        block.pyramid.add(times, values)


def _group_row(track: int, level: int, entries: Entries) -> BlockRow:
    t0, t1 = entries.t0.tolist(), entries.t1.tolist()
    columns = [*map(pack_ints, (t0, t1)),
               *(pack_floats(values.tolist()) for values in (entries.low, entries.high))]
    return track, level, entries.first, len(entries), min(t0) * 1000, max(t1) * 1000, pack_block(columns)
