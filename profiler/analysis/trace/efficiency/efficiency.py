"""Model FLOPs utilization of steps. Definitions, section 8."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device import occupancy
from profiler.analysis.trace.efficiency import peaks
from profiler.analysis.trace.efficiency.work import Counted
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE

CONVENTION = ("FLOPs of matrix products, convolutions and attention in forward and backward, from their "
              "shapes, a multiply-add as two, causal masks not taken off, recomputation not counted; over "
              "steady step time and the device's dense peak")
ENOUGH = 0.05  # of kernel time that belongs to no operator: above it a figure is a lower bound


@dataclass(frozen=True)
class Mfu:
    """`value` in [0, 1], None with the `reason`. `peak_tflops` is for `dtype`, that of most FLOPs."""

    value: float | None
    reason: str
    flops_per_step: float | None    # model FLOPs on the device
    achieved_tflops: float | None   # of the model: FLOPs over step time
    step_ns: int | None
    device: str
    dtype: str
    peak_tflops: float | None
    source: str
    by_dtype: dict[str, float]      # FLOPs a step
    convention: str = CONVENTION
    notes: tuple[str, ...] = ()


def mfu(owners: Owners, counted: Counted, steps: Steps, step_ns: int, device: int) -> Mfu:
    """Of one device: `step_ns` is steady step time, NONE without steps."""
    known = peaks.peak(occupancy.properties(owners.trace, device))
    empty = Mfu(None, "", None, None, step_ns if step_ns > 0 else None, known.name, "", None,
                known.peak.source if known.peak else "", {})
    if not steps.per_step or step_ns <= 0:
        return replace(empty, reason="the trace has no steps")
    step = steps.at(owners.trace.host.start[counted.row])
    inside = (step >= 0) & steps.counted[np.maximum(step, 0)] & (counted.device == device)
    sums: dict[str, float] = defaultdict(float)
    number = int(steps.counted.sum())
    for k in np.flatnonzero(inside).tolist():
        sums[counted.dtype[k]] += int(counted.model[k]) / number
    total = sum(sums.values())
    if total <= 0:
        return replace(empty, reason="the trace has no shapes of operators that launched kernels "
                                     "(record_shapes)")
    dtype = max(sums, key=lambda name: sums[name])
    limit = known.peak.tflops.get(dtype) if known.peak else None
    if known.peak is None:
        reason = known.reason
    elif limit is None:
        reason = f"no peak of {known.name} is known for {dtype or 'a data type that the trace does not tell'}"
    else:
        reason = ""
    achieved = total / step_ns / 1e3
    return Mfu(achieved / limit if limit else None, reason, total, achieved, step_ns, known.name, dtype,
               limit, empty.source, dict(sums), notes=_notes(owners, counted, sums, dtype))


def _notes(owners: Owners, counted: Counted, sums: dict[str, float], dtype: str) -> tuple[str, ...]:
    notes = []
    if counted.silent:
        notes.append(f"{counted.silent} operators do not tell their shapes: at least this")
    lost = _without_operator(owners)
    if lost > ENOUGH:
        notes.append(f"{100 * lost:.0f} % of kernel time belongs to no operator (graphs, compiled code): "
                     "at least this")
    others = {name: share for name, share in sums.items() if name != dtype and share}
    if others:
        total = sum(sums.values())
        notes.append("other data types too: " + ", ".join(
            f"{name or 'unknown'} {100 * flops / total:.0f} %" for name, flops in others.items()))
    if counted.again.any():
        notes.append(f"{int(counted.again.sum())} operators ran forward again for backward: not counted")
    return tuple(notes)


def _without_operator(owners: Owners) -> float:
    """Share of compute time whose launch lies in no operator."""
    table, compute = owners.trace.device, owners.joined.compute
    took = np.where(compute, table.end - table.start, 0)
    total = int(took.sum())
    return float(took[owners.device_operator == NONE].sum() / total) if total else 0.0
