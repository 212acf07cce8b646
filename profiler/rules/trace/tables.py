"""Tables of what a trace holds, as plain values: kernels, operators, modules, communication, ranks.

A table is of the counted steps; sums are over all of them, what ends in `per_step` over each. Times are ms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from profiler.analysis.trace.ranks.communication import shared
from profiler.analysis.trace.ranks.ranks import Ranks
from profiler.analysis.trace.ranks.straggler import Straggler
from profiler.rules.trace.facts import TraceFacts

MOST = 100  # rows of a table; what is left out is summed up


def figures(row: Any, *without: str) -> dict[str, Any]:
    """A result's fields, those in ns (whose names end so) in ms. `without`: fields that are left out."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if field.name in without:
            continue
        if field.name.endswith("_ns"):
            found[f"{field.name.removesuffix('_ns')}_ms"] = None if value is None else value / 1e6
        else:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def cut(rows: Iterable[dict[str, Any]], *totals: str) -> dict[str, Any]:
    """The first rows, and of the others how many there are and what `totals` sum up to."""
    every = list(rows)
    rest = every[MOST:]
    return {"rows": every[:MOST], "left_out": len(rest),
            **{f"left_out_{total}": sum(r[total] or 0 for r in rest) for total in totals}}


def partition(facts: TraceFacts) -> dict[str, Any]:
    """Beside the partition: exposed copies by kind, and the part of `host` that launches."""
    if facts.lacks or not facts.shares.window:
        return {"transfer_by_kind_ms": None, "launching_ms": None}
    return {"transfer_by_kind_ms": {name: ns / 1e6 for name, ns in facts.transfer_by_kind.items()},
            "launching_ms": facts.shares.launching / 1e6}


def kernels(facts: TraceFacts) -> dict[str, Any] | None:
    """By name, operator, module and input shapes; None without kernels in the steps."""
    found, rows = facts.kernels, facts.activities
    summary = facts.kernel_summary
    if not summary.count:
        return None

    def by(*keys: str) -> dict[str, Any]:
        return cut(({**figures(g), "ms_per_step": per_step(facts, g.total_ns / 1e6),
                     "count_per_step": per_step(facts, g.count)} for g in found.by(*keys, rows=rows)),
                   "total_ms")

    return {**figures(summary), "count_per_step": per_step(facts, summary.count), "by_name": by("name"),
            "by_operator": by("operator"), "by_top_operator": by("top_operator"), "by_module": by("module"),
            "by_shapes": by("operator", "shapes"), "by_stream": by("device", "stream")}


def operators(facts: TraceFacts) -> dict[str, Any] | None:
    """By name, by name and shapes, by name and call stack where the trace has any; None without operators.

    Rows are by device time, then by host time.
    """
    if not facts.by("name"):
        return None

    def told(*keys: str) -> dict[str, Any]:
        return cut(({**figures(o), "calls_per_step": per_step(facts, o.calls)} for o in facts.by(*keys)),
                   "host_self_ms", "device_self_ms")

    return {"by_name": told("name"), "by_shapes": told("name", "shapes"),
            "by_stack": told("name", "stack") if facts.has_stacks else None}


def modules(facts: TraceFacts) -> dict[str, Any] | None:
    """nn.Modules in their places; None in a trace without stacks."""
    found = facts.modules
    return cut((figures(m) for m in found), "device_self_ms") if found else None


def communication(facts: TraceFacts) -> dict[str, Any] | None:
    """By collective and group, and by size as well; None without any."""
    found = facts.communication
    if not found.count:
        return None
    unsure = {"exposed_ms": None, "overlapped_ms": None} if facts.lacks else {}  # compute is missing

    def told(row: Any) -> dict[str, Any]:
        return figures(row, "kinds", "rows") | unsure

    return {**told(found), "kinds": [told(row) for row in found.kinds],
            "by_size": cut(map(told, found.rows), "time_ms")}


def waiting(found: Ranks | None, who: Straggler | None) -> dict[str, Any] | None:
    """What several ranks' traces tell together: who waits for whom, and whose clock is off."""
    if found is None or who is None:
        return None
    clocks = [{"rank": name, "offset_ms": _ms(c.offset), "low_ms": _ms(c.low), "high_ms": _ms(c.high),
               "agrees": c.agrees} for name, c in zip(found.names, found.clocks, strict=False)]
    return {**figures(who, "waiting", "name"), "straggler": who.name, "basis": found.basis,
            "ranks": [figures(w) for w in who.waiting], "clocks": clocks,
            "collectives": cut((figures(row) for row in shared(found)), "wait_ms"),
            "notes": list(found.notes)}


def per_step(facts: TraceFacts, total: float) -> float | None:
    """A sum over the counted steps as a mean; None without steps."""
    return total / facts.divisor if facts.divisor else None


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6
