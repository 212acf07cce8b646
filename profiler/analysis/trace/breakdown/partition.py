"""The partition of step time: what the device did at every instant. Definitions, section 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.breakdown import classes, cpu
from profiler.analysis.trace.breakdown.gaps import Gaps, gaps
from profiler.analysis.trace.breakdown.labels import Labels
from profiler.analysis.trace.device.busy import busy
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steady import steady
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE, Flags, Ints

MOST_NAMES = 100  # of other:<name>


@dataclass(frozen=True)
class Partition:
    """n windows of one device. Every row of `ns` sums to the length of its window exactly."""

    device: int                      # id; NONE: there is no accelerator, and the CPU is the device
    classes: tuple[str, ...]         # classes.BASE without queued:peer, then those that occur
    windows: Ints                    # int64[n, 2], ns; rows are those of Steps
    ns: Ints                         # int64[n, len(classes)]
    transfer_by_kind: Mapping[str, Ints]  # int64[n] of exposed copies by kind; they sum to transfer_exposed
    launching: Ints                  # int64[n]: part of `host` between a step's first and last kernel launch
    counted: Flags                   # windows that enter means
    gaps: Gaps | None                # of the device; None without an accelerator

    @property
    def mean_ns(self) -> dict[str, float]:
        """Mean of each class over the counted windows, ns; they sum to the mean window. Empty without any."""
        rows = self.ns[self.counted]
        return dict(zip(self.classes, rows.mean(axis=0).tolist(), strict=True)) if len(rows) else {}

    @property
    def mean_launching_ns(self) -> float:
        """Mean of `launching` over the counted windows, ns."""
        return float(self.launching[self.counted].mean()) if self.counted.any() else 0.0

    @property
    def mean_window_ns(self) -> float:
        """Mean counted window, ns; 0 without any."""
        lengths = (self.windows[:, 1] - self.windows[:, 0])[self.counted]
        return float(lengths.mean()) if len(lengths) else 0.0


def partition(j: Joined, steps: Steps, device: int | None = None, labels: Labels | None = None) -> Partition:
    """Partition of the windows of `steady`, for a device id; None: the one with most compute.

    `labels` of the same trace and steps saves working them out again.
    """
    device = j.main_device if device is None else device
    found = steady(j, steps, device)
    windows = found.windows
    if device == NONE or not len(windows):
        return _without_accelerator(j, windows, found.counted)
    work, labels = busy(j, device), labels or Labels(j, steps)
    real = windows[windows[:, 1] > windows[:, 0]]
    t0, t1 = (int(real[:, 0].min()), int(real[:, 1].max())) if len(real) else (0, 0)
    idle = gaps(j, steps, device, t0, t1, labels)
    by_kind = {kind: _within(windows, times) for kind, times in work.transfers.items()}
    code, texts = _columns(idle)
    ns = _by_code(windows, idle.pieces, code, len(texts))
    ns[:, classes.COMPUTE] = _within(windows, work.compute)
    ns[:, classes.COMMUNICATION] = _within(windows, work.communication)
    ns[:, classes.TRANSFER] = sum(by_kind.values())
    host = idle.pieces[idle.piece_code == classes.HOST]
    launching = _within(windows, intervals.intersect(host, launching_times(j, steps)))
    return _result(device, texts, windows, ns, found.counted,
                   {kind: each for kind, each in by_kind.items() if each.any()}, launching, idle)


def _columns(idle: Gaps) -> tuple[Ints, tuple[str, ...]]:
    """Column of each piece, and the names of the columns.

    Loops that number their annotations make thousands of names: the smallest go together.
    """
    total = np.zeros(len(idle.texts), np.int64)
    np.add.at(total, idle.piece_code, idle.pieces[:, 1] - idle.pieces[:, 0])
    others = classes.OTHER + np.flatnonzero(total[classes.OTHER:])
    if len(others) <= MOST_NAMES:
        return idle.piece_code, idle.texts
    kept = np.sort(others[np.argsort(-total[others], kind="stable")[:MOST_NAMES]])
    texts = (*classes.BASE, *(idle.texts[k] for k in kept.tolist()),
             classes.other(f"{len(others) - MOST_NAMES} more names"))
    column = np.full(len(idle.texts), len(texts) - 1)
    column[:classes.OTHER] = np.arange(classes.OTHER)
    column[kept] = classes.OTHER + np.arange(MOST_NAMES)
    return column[idle.piece_code], texts


def launching_times(j: Joined, steps: Steps) -> Ints:
    """From the first kernel launch of each step to the end of its last one, as a set of time."""
    host = j.trace.host
    rows = np.flatnonzero(j.kernel_launch)
    step = steps.at(host.start[rows])
    rows, step = rows[step >= 0], step[step >= 0]
    first = np.full(len(steps), np.iinfo(np.int64).max)
    last = np.full(len(steps), np.iinfo(np.int64).min)
    np.minimum.at(first, step, host.start[rows])
    np.maximum.at(last, step, host.end[rows])
    return intervals.union(first, last)


def _without_accelerator(j: Joined, windows: Ints, counted: Flags) -> Partition:
    row, code, pieces = cpu.doings(j).pieces(windows)
    ns = np.zeros((len(windows), len(classes.BASE)), np.int64)
    np.add.at(ns, (row, np.where(code == classes.UNKNOWN, classes.HOST, code)), pieces[:, 1] - pieces[:, 0])
    return _result(NONE, classes.BASE, windows, ns, counted, {}, np.zeros(len(windows), np.int64), None)


def _result(device: int, texts: tuple[str, ...], windows: Ints, ns: Ints, counted: Flags,
            by_kind: Mapping[str, Ints], launching: Ints, idle: Gaps | None) -> Partition:
    always = np.arange(len(texts)) < len(classes.BASE)
    always[classes.PEER] = False
    kept = np.flatnonzero(always | ns.any(axis=0))
    return Partition(device, tuple(texts[k] for k in kept.tolist()), windows, ns[:, kept], by_kind, launching,
                     counted, idle)


def _within(windows: Ints, times: Ints) -> Ints:
    return intervals.covered(times, windows[:, 0], windows[:, 1])


def _by_code(windows: Ints, pieces: Ints, code: Ints, codes: int) -> Ints:
    """How much of each window the pieces of each code fill: int64[n, codes]. Pieces are sorted, disjoint."""
    ns = np.zeros((len(windows), codes), np.int64)
    rows = np.flatnonzero(windows[:, 1] > windows[:, 0])
    window, piece, times = intervals.meet(windows[rows], pieces)
    np.add.at(ns, (rows[window], code[piece]), times[:, 1] - times[:, 0])
    return ns
