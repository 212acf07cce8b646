"""A diagnosis's figures as plain values, in ms and per second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from profiler.analysis.facts import Facts
from profiler.analysis.summary import StepSummary

MOST_INTERVALS = 100
PAUSE_NS = 2_000_000_000  # between two intervals of throttling that are told as one


class Decided(Protocol):
    @property
    def verdict(self) -> str: ...


def step_ms(summary: StepSummary | None) -> dict[str, Any] | None:
    """median, mean, p5, p95 (None below 10 steps), range; `usual` is what stages sum to."""
    if summary is None:
        return None
    spread = summary.spread
    return {"median": spread.median / 1e6, "mean": spread.mean / 1e6, "usual": summary.step_ns / 1e6,
            "p5": None if spread.p5 is None else spread.p5 / 1e6,
            "p95": None if spread.p95 is None else spread.p95 / 1e6,
            "range": [spread.low / 1e6, spread.high / 1e6]}


def throughput(loops: Sequence[Facts]) -> dict[str, Any] | None:
    """Samples (or tokens) per second over steady steps, of all ranks. None where the work is not known."""
    rates = [f.summary.throughput if f.summary else None for f in loops]
    known = [value for value in rates if value is not None]
    if not known or len(known) < len(rates):
        return None
    return {"value": sum(known), "unit": next(f"{f.summary.unit}/s" for f in loops if f.summary)}


def whole(facts: Facts) -> dict[str, Any] | None:
    """The whole training loop, with warm-up, epoch starts and stalls."""
    summary = facts.summary
    if summary is None:
        return None
    epochs = summary.epochs
    return {
        "steps": summary.total, "wall_s": (summary.earlier_ns + summary.whole_ns) / 1e9,
        "throughput": summary.whole_throughput, "stalls": int(summary.stalls.sum()),
        "stalls_s": summary.stall_ns / 1e9,
        "first_wait_ms": None if epochs.first_wait_ns is None else epochs.first_wait_ns / 1e6,
        "epoch_starts": epochs.later,
        "epoch_start_wait_ms": epochs.later_wait_ns / 1e6 if epochs.later else None,
    }


def throttling(facts: Facts) -> dict[str, Any] | None:
    """Times in which the GPU ran below its clocks, of the loop; None where its driver gave no reasons.

    By reason, each with all of its intervals; and the first MOST_INTERVALS, the power cap apart from other
    reasons, with pauses below PAUSE_NS inside.
    """
    if not facts.throttle_known_ns:
        return None
    known = facts.throttle_known_ns
    spans = facts.throttles.apart(PAUSE_NS)
    took = {reason: np.diff(times, axis=1)[:, 0] for reason, times in facts.throttles.by_reason.items()}
    return {
        "s": facts.throttled_ns / 1e9, "share": min(1.0, facts.throttled_ns / known), "known_s": known / 1e9,
        "reasons": [{"reason": reason, "intervals": len(ns), "s": float(ns.sum()) / 1e9,
                     "longest_s": float(ns.max()) / 1e9, "share": min(1.0, float(ns.sum()) / known)}
                    for reason, ns in took.items()],
        "intervals": [{"t0_ns": span.t0_ns, "t1_ns": span.t1_ns, "held_s": span.held_ns / 1e9,
                       "reasons": list(span.reasons)} for span in spans[:MOST_INTERVALS]],
        "more": max(0, len(spans) - MOST_INTERVALS)}


def device(facts: Facts) -> dict[str, Any]:
    """The device that the loop's work runs on."""
    if not facts.on_device:
        return {"kind": "cpu", "name": "CPU", "cores": facts.cores}
    if facts.device is None:
        return {"kind": "cuda", "name": "GPU, not watched", "cores": facts.cores}
    return {"kind": facts.device.kind, "name": facts.device.name, "uuid": facts.device.uuid,
            "memory_total": facts.device.memory_total, "cores": facts.cores}


def ranks(every: Sequence[tuple[Facts, Decided]]) -> list[dict[str, Any]] | None:
    """One entry a rank, where there are several."""
    return [{
        "rank": facts.rank,
        "pid": facts.process.pid if facts.process else None,
        "verdict": decided.verdict, "steps": facts.summary.steady if facts.summary else 0,
        "step_ms": step_ms(facts.summary),
        "stages_ms": {k: v / 1e6 for k, v in facts.summary.stages.items()} if facts.summary else None,
        "throughput": throughput([facts]),
    } for facts, decided in every] or None
