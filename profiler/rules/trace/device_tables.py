"""Tables of what devices did, as plain values: launches, queue, copies, streams, idle gaps, critical path."""

from __future__ import annotations

from typing import Any

import numpy as np

from profiler.analysis.summary import Spread
from profiler.analysis.trace.device.copies import copies
from profiler.analysis.trace.device.launches import launches
from profiler.analysis.trace.device.overlap import devices
from profiler.analysis.trace.device.queue import Depth, depths
from profiler.analysis.trace.intervals import total, union
from profiler.analysis.trace.path.critical_path import parts
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.tables import cut, figures, per_step
from profiler.trace.model import NONE

POINTS = 200  # of a series that is written out
LONGEST = 20  # idle gaps that are listed
# Of launches, what says something of the device.
_OF_KERNELS = ("delay_us", "latency_us", "negative", "short_kernels", "single_kernels", "kernels_per_step")


def launching(facts: TraceFacts) -> dict[str, Any] | None:
    """Launch calls of the counted steps, their cost and the device's delay; None without any call.

    What compares them with kernels is None where these are not all there.
    """
    found = launches(facts.joined, facts.steps, facts.in_step, facts.activities)
    if not found.calls:
        return None
    counted = facts.steps.counted
    told = figures(found, "per_step", "kernels_per_step", "cost", "delay", "latency")
    if facts.lacks:
        return told | dict.fromkeys(_OF_KERNELS) | {"cost_us": _us(found.cost)} | (
            {"calls_per_step": float(found.per_step[counted].mean())} if len(found.per_step) else {})
    if len(found.per_step):
        told |= {"calls_per_step": float(found.per_step[counted].mean()),
                 "kernels_per_step": float(found.kernels_per_step[counted].mean())}
    return told | {"cost_us": _us(found.cost), "delay_us": _us(found.delay), "latency_us": _us(found.latency)}


def queues(facts: TraceFacts) -> list[dict[str, Any]] | None:
    """Activities that were submitted and had not begun, over the counted steps' time; None without any."""
    facts = facts.single
    windows = union(facts.windows[:, 0], facts.windows[:, 1])
    if not facts.on_device or facts.lacks or not len(windows):
        return None
    found = depths(facts.joined, windows)
    return [{"device": d.device, "stream": d.stream, "mean": d.mean, "max": d.max,
             "series": _series(d) if d.stream is None else None} for d in found] or None


def _series(depth: Depth) -> dict[str, list[float]]:
    """The largest depth in each of evenly spaced pieces of time, ms since the trace's zero."""
    if not len(depth.time):
        return {"ms": [], "depth": []}
    edges = np.unique(np.linspace(0, len(depth.time), min(POINTS, len(depth.time)) + 1).astype(int)[:-1])
    return {"ms": (depth.time[edges] / 1e6).tolist(),
            "depth": np.maximum.reduceat(depth.depth, edges).tolist()}


def copied(facts: TraceFacts) -> list[dict[str, Any]] | None:
    """Copies and memsets by kind, with bytes and GB/s; None without any in the steps."""
    found = copies(facts.joined, facts.activities)
    unsure = {"overlapped_ms": None} if facts.lacks else {}
    return [{**figures(c), **unsure, "ms_per_step": per_step(facts, c.total_ns / 1e6)} for c in found] or None


def busy(facts: TraceFacts) -> list[dict[str, Any]] | None:
    """Kernel time as a sum and as a union, and what ran beside what, in the counted steps; by device.

    Of each device its own partition. None where kernels are missing.
    """
    if facts.lacks:
        return None
    windows = union(facts.windows[:, 0], facts.windows[:, 1])
    found = devices(facts.joined, windows)
    return [{**figures(d, "streams"), **_partition(facts, d.device),
             "streams": [figures(s) for s in d.streams]} for d in found] or None


def _partition(facts: TraceFacts, device: int) -> dict[str, Any]:
    """Means over the counted windows of one device, whose windows are its own."""
    part = facts.partition_of(device)
    return {"window_ms": part.mean_window_ns / 1e6 or None,
            "partition_ms": {name: ns / 1e6 for name, ns in part.mean_ns.items()} or None,
            "launching_ms": part.mean_launching_ns / 1e6}


def gaps(facts: TraceFacts) -> dict[str, Any] | None:
    """The longest idle gaps with what they went to, what ended them and the call behind that."""
    found = facts.partition.gaps
    if found is None or facts.lacks:
        return None
    inside = np.flatnonzero(_touches(facts, found.start, found.end))
    order = inside[np.argsort(-(found.end - found.start)[inside], kind="stable")]
    trace, cause = facts.trace, found.cause

    def name(column: Any, row: int) -> str | None:
        return trace.names[column[row]] if row != NONE and column[row] >= 0 else None

    rows = [{"start_ms": int(found.start[k]) / 1e6, "ms": int(found.end[k] - found.start[k]) / 1e6,
             "cause": found.texts[cause[k]], "next": name(trace.device.name, int(found.next[k])),
             "launch": name(trace.host.name, int(found.launch[k]))} for k in order[:LONGEST].tolist()]
    total = int((found.end - found.start)[inside].sum())
    return {"count": len(inside), "total_ms": total / 1e6, "longest": rows}


def _touches(facts: TraceFacts, start: Any, end: Any) -> Any:
    """Which spans reach into a counted window."""
    part = facts.partition
    windows = union(part.windows[part.counted, 0], part.windows[part.counted, 1])
    after = np.searchsorted(windows[:, 1], start, side="right")
    return (after < len(windows)) & (windows[np.minimum(after, len(windows) - 1), 0] < end) \
        if len(windows) else np.zeros(len(start), bool)


def critical(facts: TraceFacts) -> dict[str, Any] | None:
    """The critical path by class, ms per step, and by what is on it; None without a device or a replay."""
    path = facts.critical_path
    if path is None:
        return None
    facts = facts.single
    windows = facts.steady.windows[facts.steady.counted]
    counted = union(windows[:, 0], windows[:, 1]) if facts.divisor else None
    steps = facts.divisor or 1
    return {"by_class_ms": {name: ns / 1e6 / steps for name, ns in path.total_ns(counted).items()},
            "window_ms": total(path.windows) / 1e6,
            "parts": cut((figures(p) for p in parts(path, facts.trace, counted)), "total_ms")}


def _us(times: Spread | None) -> dict[str, float | None] | None:
    """Median, mean, percentiles and range of times in ns, in us."""
    if times is None:
        return None
    told = {"median": times.median, "mean": times.mean, "p5": times.p5, "p95": times.p95, "min": times.low,
            "max": times.high}
    return {name: None if ns is None else ns / 1e3 for name, ns in told.items()}
