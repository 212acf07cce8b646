"""The data loader in a replay: when batches arrive, and what a fetch costs by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.replay.segments import Segments
from profiler.trace import names
from profiler.trace.model import NONE, Flags, Ints, Kind

OVERHEAD_NS = 150_000  # a fetch that is never shorter than this has waited each time
KNOWN = 0.01           # waits below this share of a step leave the loader's capacity unknown


@dataclass(frozen=True)
class Loader:
    """Fetches of the loop, m in order; times are the trace's, ns."""

    rows: Ints        # of Trace.host, outermost ones
    start: Ints
    end: Ints
    own: int          # what a fetch costs without waiting
    workers: bool     # worker processes make the batches; without them a fetch is host work
    known: bool       # whether the trace shows how fast they make them
    arrival: Ints     # when each batch was there; of no meaning unless known

    @property
    def waits(self) -> Ints:
        """Rows of fetches that wait for workers whose speed the trace shows."""
        return self.rows if self.workers and self.known else self.rows[:0]

    @property
    def hidden(self) -> bool:
        """Whether worker processes load, and the trace does not show how fast they could."""
        return self.workers and not self.known

    @property
    def waited(self) -> Flags:
        """Fetches that the loop waited in."""
        return self.end - self.start > 2 * self.own

    @classmethod
    def of(cls, j: Joined, steps: Steps, threads: list[int]) -> Loader:
        host = j.trace.host
        rows = np.flatnonzero(j.host_names(names.is_loader).astype(bool) & (host.kind != Kind.PYTHON)
                              & np.isin(host.thread, threads) & (steps.at(host.start) >= 0))
        nested = np.isin(j.parent[rows], rows)
        rows = rows[~nested]
        start, end = host.start[rows], host.end[rows]
        length = end - start
        own = min(int(length.min()), OVERHEAD_NS) if len(rows) else 0
        workers = any("SingleProcess" not in j.trace.names[c] for c in np.unique(host.name[rows]).tolist())
        waits = np.where(length > 2 * own, length - own, 0)[steps.counted[steps.at(start)]].sum()
        known = bool(waits >= KNOWN * (steps.end - steps.start)[steps.counted].sum()) and len(rows) > 1
        return cls(rows, start, end, own, workers, known, _arrivals(start, end, own))

    def costs(self, rows: Ints, segment: Ints, segments: Segments) -> tuple[Ints, Ints, Ints]:
        """Own cost of fetches, how long after the batch before it each one arrives, and NONE.

        Where the batch before it is not replayed, 0 and the time since the step began.
        """
        if not len(rows):
            return rows, rows, rows
        at = np.searchsorted(self.rows, rows)
        cost = np.where(self.waited[at], self.own, self.end[at] - self.start[at])
        new = np.concatenate(([True], segment[1:] != segment[:-1])) & ~segments.follows[segment]
        since = np.where(new, segments.start[segment], self.arrival[np.maximum(at - 1, 0)])
        return cost, self.arrival[at] - since, np.where(new, 0, NONE)


def _arrivals(start: Ints, end: Ints, own: int) -> Ints:
    """When batches were ready: those waited for at the end of their fetch, those between at even distances.

    A batch that was not waited for was there when its fetch began, at the latest.
    """
    waited = np.flatnonzero(end - start > 2 * own)
    at = np.arange(len(start))
    if len(waited) < 2:
        return np.where(end - start > 2 * own, end, start)
    even = np.interp(at, waited, end[waited])
    spacing = (end[waited[-1]] - end[waited[0]]) / (waited[-1] - waited[0])
    even = np.where(at < waited[0], end[waited[0]] - (waited[0] - at) * spacing, even)
    even = np.where(at > waited[-1], end[waited[-1]] + (at - waited[-1]) * spacing, even)
    found = np.round(even).astype(np.int64)
    return np.where(end - start > 2 * own, end, np.minimum(found, start))
