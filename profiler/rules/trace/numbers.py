"""A trace's figures as plain values, in ms, in the form of the design, section 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from profiler.analysis.summary import Spread
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import NONE


def step_ms(facts: TraceFacts) -> dict[str, Any] | None:
    """median, mean, p5, p95 (None below 10 steps), range; `usual` is what the partition sums to."""
    found: Spread | None = facts.spread
    if found is None:
        return None
    return {"median": found.median / 1e6, "mean": found.mean / 1e6, "usual": facts.shares.window / 1e6,
            "p5": None if found.p5 is None else found.p5 / 1e6,
            "p95": None if found.p95 is None else found.p95 / 1e6,
            "range": [found.low / 1e6, found.high / 1e6]}


def steps(facts: TraceFacts) -> dict[str, Any]:
    """How many steps count, why others do not, by which rule they were found, what windows are meant."""
    found = facts.steps
    first = ~facts.found.counted
    lost = facts.complete.incomplete & facts.found.counted & ~found.counted
    other = ~(facts.steady.counted | first | lost)
    why = {"the first of its profiler window": first, "without all its kernels": lost,
           "without a predecessor": other}
    return {"count": int(facts.steady.counted.sum()) if found.per_step else 0,
            "total": len(found) if found.per_step else 0, "rule": found.rule, "kind": "trace",
            "windows": facts.steady.kind, "warm_up": 0,
            "numbers": [int(n) for n in found.number[facts.steady.counted] if n != NONE],
            "left_out": {text: int(rows.sum()) for text, rows in why.items()
                         if found.per_step and rows.any()}}


def incomplete(facts: TraceFacts) -> list[dict[str, Any]] | None:
    """gpu_data_incomplete: the steps of whose launches more than 1 % lack their kernels; None without any.

    `step` is the step's number, None where the trace has none.
    """
    told, number = facts.complete, facts.found.number
    rows = np.flatnonzero(told.incomplete).tolist()
    return [{"step": int(number[k]) if number[k] != NONE else None, "launches": int(told.launches[k]),
             "missing": int(told.missing[k])} for k in rows] or None


def partition_ms(facts: TraceFacts) -> dict[str, float] | None:
    """Mean of each class over the counted windows. None when nothing can be claimed."""
    if facts.lacks or not facts.shares.window:
        return None
    return {name: ns / 1e6 for name, ns in facts.shares.classes.items()}


def what_if(facts: TraceFacts) -> list[dict[str, Any]] | None:
    """One entry a scenario; None when predictions were not asked for or are withheld."""
    if facts.replay.withheld:
        return None
    return [{"scenario": s.name, "step_ms": s.step_ns / 1e6, "speedup": s.speedup, "low": s.low,
             "high": s.high, "note": s.note,
             "also": [{"when": when, "speedup": value} for when, value in s.also]}
            for s in facts.replay.scenarios]


def replay(facts: TraceFacts) -> dict[str, Any] | None:
    """How well the unchanged replay meets the trace; None when none was asked for."""
    if not facts.what_if:
        return None
    told = facts.replay
    return {"error": told.error, "unbounded_error": told.unbounded_error, "steps": told.steps,
            "step_ms": told.step_ns / 1e6 if told.step_ns > 0 else None,
            "measured_ms": told.measured_ns / 1e6 if told.measured_ns > 0 else None,
            "scale": told.scale, "withheld": told.withheld}


def device(facts: TraceFacts) -> dict[str, Any]:
    """The device that the verdict is about."""
    if not facts.on_device:
        return {"kind": "cpu", "name": "CPU"}
    known = facts.properties
    memory = known.get("totalGlobalMem")
    number = facts.partition.device
    return {"kind": "accelerator", "id": None if number == NONE else number,
            "name": str(known.get("name") or "GPU, not named in the trace"),
            "memory_total": memory if isinstance(memory, int) else None}


def ranks(every: Sequence[TraceFacts]) -> list[dict[str, Any]] | None:
    """One entry a process, where there are several."""
    if len(every) < 2:
        return None
    return [{"rank": f.trace.rank, "pid": pid(f), "source": f.trace.source, "verdict": f.decision.verdict,
             "also": list(f.decision.also), "confidence": f.decision.confidence, "device": device(f),
             "steps": steps(f)["count"], "step_ms": step_ms(f), "stages_ms": None, "throughput": None,
             "partition_ms": partition_ms(f), "what_if": what_if(f), "replay_error": f.replay.error}
            for f in every]


def trace(facts: TraceFacts) -> dict[str, Any]:
    """What was read of one process, and what of its file was lost."""
    read = facts.trace
    losses = read.losses
    return {"source": read.source, "rank": read.rank, "world_size": read.world_size, "pid": pid(facts),
            "base_ns": read.base_ns, "absolute": read.absolute, "resolution_ns": read.resolution_ns,
            "host_events": len(read.host), "device_events": len(read.device),
            "losses": {"events": losses.events, "invalid": losses.invalid, "unfinished": losses.unfinished,
                       "repaired": losses.repaired, "unreadable": losses.unreadable,
                       "missing_values": losses.missing_values, "truncated_at": losses.truncated_at,
                       "examples": list(losses.examples)},
            "notes": list(read.notes)}


def pid(facts: TraceFacts) -> int | None:
    """Of the process, by the loop's thread; None without host events."""
    return facts.trace.threads[facts.steps.thread].pid if facts.steps.thread != NONE else None
