"""What a host thread was in at an instant, and what stands above a few rows of it."""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.joined import Joined, take
from profiler.trace.model import NONE, Codes, Flags, Ints


def innermost(j: Joined, thread: Codes, time: Ints) -> Codes:
    """The host row that holds each instant most closely on its thread: int32[n], NONE outside any.

    In a trace of whole microseconds an instant at the end of an event may still lie in it.
    """
    host = j.trace.host
    if not len(host) or not len(time):
        return np.full(len(time), NONE, np.int32)
    order = np.argsort(host.thread, kind="stable")  # rows are sorted by start already
    found = np.full(len(time), NONE, np.int32)
    for lane in np.unique(thread).tolist():
        rows = order[np.searchsorted(host.thread[order], lane):
                     np.searchsorted(host.thread[order], lane, side="right")]
        own = np.flatnonzero(thread == lane)
        at = np.searchsorted(host.start[rows], time[own], side="right") - 1
        found[own] = np.where(at >= 0, rows[np.maximum(at, 0)], NONE) if len(rows) else NONE
    slack = 1 if j.trace.resolution_ns > 1 else 0
    beyond = np.flatnonzero(found >= 0)
    while len(beyond):
        beyond = beyond[host.end[found[beyond]] + slack <= time[beyond]]
        found[beyond] = j.parent[found[beyond]]
        beyond = beyond[found[beyond] >= 0]
    return found


def climb(up: Codes, rows: Codes, wanted: Flags) -> Codes:
    """For each of `rows` the closest of itself and those above it along `up` that is wanted; else NONE.

    For some rows; `owners.nearest` answers for all of them.
    """
    found = rows.copy()
    open_rows = np.flatnonzero(found >= 0)
    while len(open_rows):
        open_rows = open_rows[~wanted[found[open_rows]]]
        found[open_rows] = up[found[open_rows]]
        open_rows = open_rows[found[open_rows] >= 0]
    return found


def highest(up: Codes, rows: Codes, wanted: Flags) -> Codes:
    """For each of `rows` the farthest of itself and those above it along `up` that is wanted; else NONE."""
    found = climb(up, rows, wanted)
    while True:
        above = climb(up, take(up, found), wanted)
        if (above < 0).all():
            return found
        found = np.where(above >= 0, above, found)
