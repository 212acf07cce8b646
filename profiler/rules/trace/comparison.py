"""Two traces compared, as plain values in ms: steps, partition, operators and kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.analysis.steady import FEWEST
from profiler.analysis.trace.compare import Change, aligned, changes
from profiler.rules.trace import numbers
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.tables import MOST

SAME = 0.02  # a step time that differs by less is the same: definitions, section 7


def compare(a: TraceFacts, b: TraceFacts) -> dict[str, Any]:
    """Everything per step where both traces have steps, else absolute.

    `ratio` above 1: b is faster. None where either has too few steps to say so.
    """
    carried = min(numbers.steps(facts)["count"] for facts in (a, b)) >= FEWEST
    ratio = a.step_ns / b.step_ns if carried and a.step_ns and b.step_ns else None
    return {"schema": 1, "a": side(a), "b": side(b), "ratio": ratio,
            "per_step": bool(a.divisor and b.divisor), "steps": _steps(a, b),
            "partition_ms": _partition(a, b),
            "operators": _table(_operators(a, b)), "operators_device": _table(_operators(a, b, "device")),
            "kernels": _table(_kernels(a, b)),
            "kernels_by_operator": _table(_kernels(a, b, "operator")), "notes": _notes(a, b)}


def side(facts: TraceFacts) -> dict[str, Any]:
    """What one trace is."""
    return {"source": facts.trace.source, "rank": facts.trace.rank, "device": numbers.device(facts),
            "verdict": facts.decision.verdict, "also": list(facts.decision.also),
            "steps": numbers.steps(facts), "step_ms": numbers.step_ms(facts),
            "window_ms": None if facts.lacks else facts.shares.window / 1e6}


def _steps(a: TraceFacts, b: TraceFacts) -> list[dict[str, Any]] | None:
    """Counted windows in pairs: by number where both traces hold the same one, else in order."""
    if a.step_ns is None or b.step_ns is None:
        return None
    found = []
    one, two = a.steady.counted, b.steady.counted
    numbers_a, numbers_b = a.steps.number[one], b.steps.number[two]
    length_a, length_b = a.steady.lengths[one], b.steady.lengths[two]
    for i, k in aligned(numbers_a, numbers_b):
        found.append({"a": None if i is None else int(numbers_a[i]),
                      "b": None if k is None else int(numbers_b[k]),
                      "a_ms": None if i is None else int(length_a[i]) / 1e6,
                      "b_ms": None if k is None else int(length_b[k]) / 1e6})
    return found


def _partition(a: TraceFacts, b: TraceFacts) -> list[dict[str, Any]] | None:
    one, two = numbers.partition_ms(a), numbers.partition_ms(b)
    if one is None or two is None:
        return None
    steps_a, steps_b = a.shares.steps, b.shares.steps
    rows = [{"class": name, "a_ms": one.get(name, 0.0), "b_ms": two.get(name, 0.0),
             "delta_ms": two.get(name, 0.0) - one.get(name, 0.0),
             "a_total_ms": one.get(name, 0.0) * steps_a, "b_total_ms": two.get(name, 0.0) * steps_b}
            for name in {**one, **two}]
    return sorted(rows, key=lambda row: -abs(row["delta_ms"]))


def _operators(a: TraceFacts, b: TraceFacts, where: str = "host") -> tuple[Change, ...]:
    """By self time on the host or on the device."""
    def told(facts: TraceFacts) -> list[tuple[tuple[str, ...], int, int]]:
        return [(o.key, o.calls, o.host_self_ns if where == "host" else o.device_self_ns)
                for o in facts.by("name") if where == "host" or o.device_activities]

    one, two = told(a), told(b)
    return changes(one, two, a.divisor, b.divisor)


def _kernels(a: TraceFacts, b: TraceFacts, key: str = "name") -> tuple[Change, ...]:
    one, two = ([(g.key, g.count, g.total_ns) for g in f.kernels.by(key, rows=f.activities)] for f in (a, b))
    return changes(one, two, a.divisor, b.divisor)


def _table(found: tuple[Change, ...]) -> dict[str, Any]:
    """Rows by change, and of the rest how many. `new` and `vanished` count all of them."""
    return {"rows": [_row(change) for change in found[:MOST]], "left_out": len(found[MOST:]),
            "new": sum(c.a is None for c in found), "vanished": sum(c.b is None for c in found),
            "a_ms": sum(c.mean_ns("a") for c in found) / 1e6,
            "b_ms": sum(c.mean_ns("b") for c in found) / 1e6}


def _row(change: Change) -> dict[str, Any]:
    state = "new" if change.a is None else "vanished" if change.b is None else "both"
    one, two = change.a, change.b
    return {"key": list(change.key), "state": state, "a_ms": change.mean_ns("a") / 1e6,
            "b_ms": change.mean_ns("b") / 1e6, "delta_ms": change.delta_ns / 1e6,
            "a_count": change.mean_count("a"), "b_count": change.mean_count("b"),
            "a_total_ms": one.total_ns / 1e6 if one else None,
            "b_total_ms": two.total_ns / 1e6 if two else None,
            "a_total_count": one.count if one else 0, "b_total_count": two.count if two else 0}


def _notes(a: TraceFacts, b: TraceFacts) -> list[str]:
    """What must be said beside the numbers."""
    found = []
    one, two = numbers.device(a)["name"], numbers.device(b)["name"]
    if one != two:
        found.append(f"The devices differ: {one} and {two}")
    for what, first, second in (("ranks", a.trace.rank, b.trace.rank),
                                ("numbers of ranks", a.trace.world_size, b.trace.world_size)):
        if first is not None and second is not None and first != second:
            found.append(f"The {what} differ: {first} and {second}")
    if a.steps.rule != b.steps.rule:
        found.append(f"Steps were found by {a.steps.rule} in one and by {b.steps.rule} in the other")
    elif a.steps.per_step and a.steady.kind != b.steady.kind:
        found.append(f"Step times are the {a.steady.kind}'s in one and the {b.steady.kind}'s in the other")
    if not (a.divisor and b.divisor):
        found.append("Without steps in both, figures are absolute")
    else:
        counts = [numbers.steps(facts)["count"] for facts in (a, b)]
        if min(counts) < FEWEST:
            found.append(f"Which one is faster is not said: A has {counts[0]} and B {counts[1]} counted "
                         f"steps, and a step time takes at least {FEWEST}")
    versions = [_versions(f.trace.metadata) for f in (a, b)]
    found += [f"{name} differs: {versions[0][name]} and {versions[1][name]}" for name in versions[0]
              if name in versions[1] and versions[0][name] != versions[1][name]]
    for name, facts in (("A", a), ("B", b)):
        if facts.lacks:
            found.append(f"{name}: {facts.lacks}")
        found += [f"{name}: {note}" for note in facts.trace.notes]
    return found


def _versions(metadata: Mapping[str, Any]) -> dict[str, str]:
    wanted = {"cuda_driver_version": "The driver", "cuda_runtime_version": "CUDA"}
    return {title: str(metadata[key]) for key, title in wanted.items() if key in metadata}
