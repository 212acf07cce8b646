"""Sets of time as arrays: int64[n, 2] half-open intervals, ns. In a *set* they are sorted and disjoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.trace.model import Ints


def union(start: Ints, end: Ints) -> Ints:
    """The set of instants in any of the intervals; empty ones (end <= start) count for nothing."""
    keep = end > start
    start, end = start[keep], end[keep]
    if not len(start):
        return np.zeros((0, 2), np.int64)
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.stack((start[first], reach[last]), axis=1)


def edges(times: Sequence[Ints]) -> Ints:
    """Every time in these arrays once, rising."""
    # Runs that are sorted already merge in linear time; a hash of as many would not.
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *(t.ravel() for t in times)]), kind="stable")
    return every[np.concatenate(([True], every[1:] != every[:-1]))[: len(every)]]


def either(one: Ints, two: Ints) -> Ints:
    """The set of instants in one of two sets or in both."""
    both = np.concatenate((one, two))
    return union(both[:, 0], both[:, 1])


def total(times: Ints) -> int:
    """Length of a set, ns."""
    return int((times[:, 1] - times[:, 0]).sum())


def complement(times: Ints, t0: int, t1: int) -> Ints:
    """The set of instants of [t0, t1) that are not in `times`."""
    inside = clip(times, t0, t1)
    edges = np.concatenate(([t0], inside.ravel(), [t1])).reshape(-1, 2)
    return edges[edges[:, 1] > edges[:, 0]]


def clip(times: Ints, t0: int, t1: int) -> Ints:
    """The part of a set within [t0, t1)."""
    if t1 <= t0:
        return np.zeros((0, 2), np.int64)
    a = np.searchsorted(times[:, 1], t0, side="right")
    b = np.searchsorted(times[:, 0], t1, side="left")
    return np.clip(times[a:b], t0, t1)


def intersect(one: Ints, two: Ints) -> Ints:
    """The set of instants in both sets."""
    return meet(one, two)[2]


def meet(one: Ints, two: Ints) -> tuple[Ints, Ints, Ints]:
    """Where intervals of two lists meet, each list sorted and disjoint; its intervals may touch.

    Row in the first list, row in the second, and what both have in common (int64[n, 2]), in order of time.
    """
    if not len(one) or not len(two):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    first = np.searchsorted(two[:, 1], one[:, 0], side="right")
    count = np.searchsorted(two[:, 0], one[:, 1], side="left") - first
    count = np.maximum(count, 0)
    rows = np.repeat(np.arange(len(one)), count)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    other = np.repeat(first, count) + within
    start, end = np.maximum(one[rows, 0], two[other, 0]), np.minimum(one[rows, 1], two[other, 1])
    return rows, other, np.stack((start, end), axis=1)


def subtract(one: Ints, two: Ints) -> Ints:
    """The set of instants in the first set and not in the second."""
    if not len(one) or not len(two):
        return one
    return intersect(one, complement(two, int(min(one[0, 0], two[0, 0])), int(max(one[-1, 1], two[-1, 1]))))


def covered(times: Ints, start: Ints, end: Ints) -> Ints:
    """How much of each [start, end) a set covers: int64[n], ns. They may overlap and have any order."""
    if not len(times):
        return np.zeros(len(start), np.int64)
    before = np.concatenate(([0], np.cumsum(times[:, 1] - times[:, 0])))

    def up_to(t: Ints) -> Ints:
        k = np.searchsorted(times[:, 0], t, side="right")
        last = np.maximum(k - 1, 0)
        within = np.clip(t - times[last, 0], 0, times[last, 1] - times[last, 0])
        return before[last] + np.where(k > 0, within, 0)

    return up_to(np.maximum(start, end)) - up_to(start)
