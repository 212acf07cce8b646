"""Tables of memory and of efficiency, as plain values: timelines, peaks, roofline, MFU."""

from __future__ import annotations

from typing import Any

import numpy as np

from profiler.analysis.trace.efficiency.roofline import roofline
from profiler.analysis.trace.memory.memory import Timeline, growth, usage
from profiler.analysis.trace.memory.memory_peak import peak
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.tables import cut, figures

POINTS = 300  # of a timeline that is written out


def memory(facts: TraceFacts) -> dict[str, Any] | None:
    """Of each device the timeline and what was live at its peak; None without allocator events and calls."""
    calls = facts.allocator_calls
    if not facts.timelines and not calls.calls:
        return None
    one = facts.single
    return {"devices": [_device(one, line) for line in one.timelines],
            "by_operator": cut((figures(u) for u in usage(facts.joined, facts.owners)), "allocated"),
            "allocator_calls": [figures(c) for c in calls.calls],
            "retries": calls.retries, "retries_in_steps": calls.retries_in_steps}


def _device(facts: TraceFacts, line: Timeline) -> dict[str, Any]:
    found = peak(facts.joined, facts.owners, facts.steps, line)
    return {"device": line.name, "known": line.known, "events": len(line.time),
            "growth_per_step": growth(line, facts.host_windows) if facts.steps.per_step else None,
            "peak": {**figures(found, "live", "device", "known"),
                     "live": cut(map(figures, found.live), "bytes")},
            "series": _series(line)}


def _series(line: Timeline) -> dict[str, list[float | None]]:
    """The largest values in each of evenly filled pieces of time, ms since the trace's zero."""
    n = len(line.time)
    edges = np.unique(np.linspace(0, n, min(POINTS, n) + 1).astype(int)[:-1])
    reserved = np.maximum.reduceat(line.reserved, edges).tolist()
    return {"ms": (line.time[edges] / 1e6).tolist(),
            "allocated": np.maximum.reduceat(line.allocated, edges).tolist(),
            "reserved": [None if value < 0 else value for value in reserved]}


def efficiency(facts: TraceFacts) -> dict[str, Any] | None:
    """MFU with its convention, peak and source; None without an accelerator, or without its kernels."""
    return figures(facts.mfu) if facts.on_device and not facts.lacks else None


def roofs(facts: TraceFacts) -> dict[str, Any] | None:
    """Operators whose work their shapes tell, and the limits of their devices; None without any, or without
    all their kernels."""
    counted = facts.work
    if facts.lacks or not len(counted):
        return None
    found = roofline(facts.owners, counted, facts.in_step[counted.row])
    return {"points": cut(map(figures, found.points), "time_ms"), "roofs": [figures(r) for r in found.roofs]}
