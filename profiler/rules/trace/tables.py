"""Tables of what a trace holds, as plain values in ms: kernels, operators, communication, ranks.

A table is of the counted steps; sums are over all of them, `per_step_ms` over each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from profiler.analysis.trace.kernels import Group
from profiler.analysis.trace.operators import Operator
from profiler.analysis.trace.ranks import ranks
from profiler.analysis.trace.straggler import straggler
from profiler.rules.trace.facts import TraceFacts

MOST = 100  # rows of a table; what is left out is summed up


def partition(facts: TraceFacts) -> dict[str, Any]:
    """What stands beside the partition: exposed copies by kind, the part of `host` that launches."""
    if facts.lacks or not facts.shares.window:
        return {"transfer_by_kind_ms": None, "launching_ms": None}
    return {"transfer_by_kind_ms": {name: ns / 1e6 for name, ns in facts.transfer_by_kind.items()},
            "launching_ms": facts.shares.launching / 1e6}


def tables(facts: TraceFacts, every: Sequence[TraceFacts]) -> dict[str, Any]:
    """One key a table; None where the trace has nothing of the kind."""
    return {"kernels": _kernels(facts), "operators": _operators(facts),
            "communication": _communication(facts), "waiting": _waiting(every)}


def _kernels(facts: TraceFacts) -> dict[str, Any] | None:
    kernels, rows, steps = facts.kernels, facts.activities, facts.divisor
    summary = kernels.summary(rows)
    if not summary.count:
        return None

    def group(g: Group) -> dict[str, Any]:
        return {"key": list(g.key), "count": g.count, "total_ms": g.total_ns / 1e6,
                "per_step_ms": g.total_ns / 1e6 / steps if steps else None, "mean_us": g.mean_ns / 1e3,
                "min_us": g.min_ns / 1e3, "max_us": g.max_ns / 1e3, "share": g.share,
                "tensor_cores": g.tensor_cores, "sm_efficiency": g.sm_efficiency, "occupancy": g.occupancy}

    def by(*keys: str) -> dict[str, Any]:
        return _cut([group(g) for g in kernels.by(*keys, rows=rows)], "total_ms")

    return {"count": summary.count, "total_ms": summary.total_ns / 1e6,
            "per_step": summary.count / steps if steps else None,
            "median_us": None if summary.median_ns is None else summary.median_ns / 1e3,
            "tensor_cores": summary.tensor_cores, "tensor_cores_possible": summary.tensor_cores_possible,
            "sm_efficiency": summary.sm_efficiency, "occupancy": summary.occupancy,
            "occupancy_known": summary.occupancy_known, "by_name": by("name"), "by_operator": by("operator"),
            "by_module": by("module"), "by_shapes": by("operator", "shapes")}


def _operators(facts: TraceFacts) -> dict[str, Any] | None:
    steps = facts.divisor

    def row(o: Operator) -> dict[str, Any]:
        return {"key": list(o.key), "calls": o.calls, "host_total_ms": o.host_total_ns / 1e6,
                "host_self_ms": o.host_self_ns / 1e6, "device_total_ms": o.device_total_ns / 1e6,
                "device_self_ms": o.device_self_ns / 1e6,
                "calls_per_step": o.calls / steps if steps else None,
                "tensor_cores": o.tensor_cores, "tensor_cores_possible": o.tensor_cores_possible}

    found = facts.operators
    return _cut([row(o) for o in found], "host_self_ms") if found else None


def _communication(facts: TraceFacts) -> dict[str, Any] | None:
    found = facts.communication
    if not found.count:
        return None
    rows = [{"collective": r.collective, "group": r.group, "ranks": r.ranks, "count": r.count,
             "bytes": r.bytes, "total_bytes": r.total_bytes, "time_ms": r.time_ns / 1e6,
             "mean_us": r.mean_ns / 1e3, "exposed_ms": r.exposed_ns / 1e6,
             "overlapped_ms": r.overlapped_ns / 1e6, "algorithm_gbs": r.algorithm_gbs,
             "bus_gbs": r.bus_gbs} for r in found.kinds]
    return {"count": found.count, "time_ms": found.time_ns / 1e6, "exposed_ms": found.exposed_ns / 1e6,
            "overlapped_ms": found.overlapped_ns / 1e6, **_cut(rows, "time_ms"), "notes": list(found.notes)}


def _waiting(every: Sequence[TraceFacts]) -> dict[str, Any] | None:
    """What several ranks' traces tell together: who waits for whom, and whose clock is off."""
    found = ranks([facts.process for facts in every])
    if found is None:
        return None
    slowest = max((facts.step_ns for facts in every if facts.step_ns is not None), default=None)
    who = straggler(found, slowest)
    rows = [{"rank": w.name, "wait_ms": w.wait_ns / 1e6, "held_up_ms": w.held_up_ns / 1e6, "last": w.last,
             "collectives": w.collectives} for w in who.waiting]
    clocks = [{"rank": name, "offset_ms": _ms(c.offset), "low_ms": _ms(c.low), "high_ms": _ms(c.high),
               "agrees": c.agrees} for name, c in zip(found.names, found.clocks, strict=False)]
    return {"straggler": who.name, "margin_ms": who.margin_ns / 1e6, "share": who.share, "steps": who.steps,
            "reason": who.reason, "basis": found.basis, "ranks": rows, "clocks": clocks,
            "notes": list(found.notes)}


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6


def _cut(rows: list[dict[str, Any]], total: str) -> dict[str, Any]:
    """The first rows, and what the others sum up to."""
    rest = rows[MOST:]
    return {"rows": rows[:MOST], "left_out": len(rest), f"left_out_{total}": _sum(r[total] for r in rest)}


def _sum(values: Iterable[float]) -> float:
    return float(sum(values))
