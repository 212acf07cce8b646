"""Communication by collective: how often, how much, how fast, and how much of it nothing else hides.

Bandwidths are nccl-tests': the algorithm's is size over time, the bus's that times a factor of the collective
and the number of ranks, so that it can be held against the link. The time is that of the kernels of one rank
and includes waiting for the others, so that both are lower bounds; `shared` tells waiting apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.ranks.collectives import Collective, Executions, bus_factor, executions
from profiler.analysis.trace.ranks.ranks import NOTHING, Ranks
from profiler.trace.model import NONE, Flags, Ints


@dataclass(frozen=True)
class Row:
    """Collectives of one kind, group and size. Times in ns, sizes in bytes, bandwidths in GB/s (1e9)."""

    collective: str
    group: str
    ranks: int | None
    count: int
    bytes: int | None            # of one
    total_bytes: int | None
    time_ns: int                 # sum over executions
    mean_ns: float
    min_ns: int
    max_ns: int
    exposed_ns: int              # of it while no compute kernel ran on the device
    overlapped_ns: int
    algorithm_gbs: float | None
    bus_gbs: float | None


@dataclass(frozen=True)
class Communication:
    """Of one process. `time_ns` and kin are of unions over streams, so that nothing counts twice."""

    kinds: tuple[Row, ...]       # by kind and group, whatever the size; `bytes` None where sizes differ
    rows: tuple[Row, ...]        # by size as well
    count: int
    time_ns: int
    exposed_ns: int
    overlapped_ns: int
    notes: tuple[str, ...] = ()


def communication(j: Joined, windows: Ints | None = None, runs: Executions | None = None) -> Communication:
    """What was communicated, of that what was launched in `windows`: int64[n, 2], sorted; None: all.

    `runs`: `collectives.executions(j)`, when it is at hand.
    """
    runs = executions(j) if runs is None else runs
    keep = np.ones(len(runs), np.bool_) if windows is None else within(windows, runs.launched)
    compute = {device: j.computing(device) for device in np.unique(runs.device).tolist()}
    hidden = np.zeros(len(runs), np.int64)
    for device, busy in compute.items():
        rows = runs.device == device
        hidden[rows] = intervals.covered(busy, runs.start[rows], runs.end[rows])
    time = overlapped = 0
    for device, busy in compute.items():
        rows = keep & (runs.device == device)
        union = intervals.union(runs.start[rows], runs.end[rows])
        time += intervals.total(union)
        overlapped += intervals.total(intervals.intersect(union, busy))
    names = j.trace.names
    return Communication(_rows(runs, names, hidden, keep, False), _rows(runs, names, hidden, keep, True),
                         int(keep.sum()), time, time - overlapped, overlapped, _notes(runs, keep))


@dataclass(frozen=True)
class Shared:
    """Collectives of one kind and size as several ranks saw them. Times in ns, bandwidths in GB/s."""

    collective: str
    ranks: int | None
    count: int
    bytes: int | None
    transfer_ns: float           # mean of what the last to arrive spent: none of it is waiting
    wait_ns: float               # mean over collectives of what all together waited
    algorithm_gbs: float | None  # of the transfer alone
    bus_gbs: float | None


def shared(ranks: Ranks) -> tuple[Shared, ...]:
    """How fast collectives of the counted steps are once everybody has arrived; what is waited for most
    comes first."""
    m = ranks.matched
    rows = np.flatnonzero(m.compared)
    if ranks.basis == NOTHING or not len(rows):
        return ()
    took = np.where(m.there, m.end - m.start, np.iinfo(np.int64).max).min(axis=1)
    waits = ranks.wait.sum(axis=1)
    groups, part = np.unique(np.stack((m.kind, m.ranks, m.bytes), 1)[rows], axis=0, return_inverse=True)
    part, found = part.reshape(-1), []
    for k, (kind, size, bytes_) in enumerate(groups.tolist()):
        own = rows[part == k]
        transfer, factor = float(took[own].mean()), bus_factor(Collective(kind), size)
        algorithm = bytes_ / transfer if bytes_ > 0 and transfer > 0 else None
        found.append(Shared(Collective(kind).name.lower(), size if size > 0 else None, len(own),
                            bytes_ if bytes_ > 0 else None, transfer, float(waits[own].mean()), algorithm,
                            None if algorithm is None or factor is None else algorithm * factor))
    return tuple(sorted(found, key=lambda row: -row.wait_ns * row.count))


def within(windows: Ints, time: Ints) -> Flags:
    """Which instants lie in one of the windows, sorted and disjoint."""
    if not len(windows):
        return np.zeros(len(time), np.bool_)
    at = np.searchsorted(windows[:, 0], time, side="right") - 1
    return (at >= 0) & (time < windows[np.maximum(at, 0), 1])


def _rows(runs: Executions, names: tuple[str, ...], hidden: Ints, keep: Flags,
          by_size: bool) -> tuple[Row, ...]:
    """Longest first."""
    at = np.flatnonzero(keep)
    size = runs.bytes if by_size else np.full(len(runs), NONE, np.int64)
    key = np.stack((runs.kind, runs.group, runs.members, runs.ranks, size), 1)[at]
    groups, part = np.unique(key, axis=0, return_inverse=True)
    part = part.reshape(-1)
    found = [_row(runs, names, hidden, at[part == k], tuple(key)) for k, key in enumerate(groups.tolist())]
    return tuple(sorted(found, key=lambda row: (-row.time_ns, row.collective, row.group, row.bytes or 0)))


def _row(runs: Executions, names: tuple[str, ...], hidden: Ints, rows: Ints, key: tuple[int, ...]) -> Row:
    kind, group, members, ranks, _ = key
    took = runs.end[rows] - runs.start[rows]
    size = runs.bytes[rows]
    known = (size > 0) & (took > 0)
    factor = bus_factor(Collective(kind), ranks)
    algorithm = float(size[known].sum() / took[known].sum()) if known.any() else None  # bytes/ns are GB/s
    label = names[group] if group >= 0 else ""
    if members >= 0:
        label = f"{label} {names[members]}".strip()
    time, covered = int(took.sum()), int(hidden[rows].sum())
    one = int(size[0]) if (size > 0).all() and (size == size[0]).all() else None
    return Row(Collective(kind).name.lower(), label, ranks if ranks > 0 else None, len(rows), one,
               int(size.sum()) if (size > 0).all() else None, time, time / len(rows), int(took.min()),
               int(took.max()), time - covered, covered, algorithm,
               None if algorithm is None or factor is None else algorithm * factor)


def _notes(runs: Executions, keep: Flags) -> tuple[str, ...]:
    notes = []
    silent = int((keep & (runs.bytes < 0) & (runs.kind != Collective.BARRIER)).sum())
    if silent:
        notes.append(f"The trace does not tell the size of {silent} of {int(keep.sum())} collectives "
                     "(record shapes, or a newer PyTorch, would): no bandwidth of these")
    if (keep & (runs.group < 0)).any():
        notes.append("The trace does not name process groups: all collectives are taken as of one group"
                     " of all ranks")
    return tuple(notes)
