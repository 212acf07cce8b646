"""What one recording of an experiment measured, and whether it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from profiler.analysis.facts import Facts, gather
from profiler.analysis.series import covered
from profiler.errors import TargetError
from profiler.experiments.loss import printed
from profiler.rules.verdict import training_processes
from profiler.run.reader import Run

FEWEST_STEPS = 5  # steady ones
STALLED = 0.10  # share of the steady time that rare stalls take
THROTTLED = 0.05  # share of the loop's time
_TROUBLE = 0x08 | 0x20 | 0x40 | 0x80  # NVML reasons; a power cap is how a busy GPU lives


@dataclass(frozen=True)
class Arm:
    """One recording. Times in ms. `marks`: why it is left out; empty when it counts.

    `step_ms` is the mean of the steady steps without rare stalls, which predictions refer
    to as well: with workers batches come in bursts, and the median step may show no wait.
    """

    step_ms: float
    median_ms: float
    steady: int
    stages_ms: Mapping[str, float]
    throughput: float | None
    marks: tuple[str, ...]
    loader: Mapping[str, Any] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"step_ms": self.step_ms, "median_ms": self.median_ms, "steady_steps": self.steady,
                "stages_ms": dict(self.stages_ms), "throughput": self.throughput, "marks": list(self.marks)}


def read_arm(path: Path, of_epochs: bool = False) -> Arm:
    """TargetError when the recording has no steady step: the end of the program's output tells why.

    `of_epochs`: the step time is the mean of all steps after the first, epoch starts included.
    """
    with Run.open(path) as run:
        every = [gather(run, process) for process in training_processes(run)]
        facts = max(every, key=lambda f: f.summary.step_ns if f.summary else 0.0)
        output = b"".join(data for _, _, data in run.output())
        ended = run.meta.get("exit") or {}
        if facts.summary is None or (facts.summary.steady < FEWEST_STEPS and ended.get("code")):
            raise TargetError(_failure(facts, ended, output))
        marks = _marks(facts, ended)
    summary = facts.summary
    return Arm(
        step_ms=(_with_starts(facts) if of_epochs else summary.step_ns) / 1e6,
        median_ms=summary.spread.median / 1e6, steady=summary.steady,
        stages_ms={name: ns / 1e6 for name, ns in summary.stages.items()}, throughput=summary.throughput,
        marks=marks, loader=facts.loader, losses=printed(output))


def _with_starts(facts: Facts) -> float:
    steps = facts.steps.select(facts.steps.training)
    if len(steps) < 2:
        return float(facts.summary.step_ns) if facts.summary else 0.0
    return float(steps.t1_ns[-1] - steps.t1_ns[0]) / (len(steps) - 1)


def _marks(facts: Facts, ended: Mapping[str, Any]) -> tuple[str, ...]:
    summary = facts.summary
    assert summary is not None
    found = []
    if summary.steady < FEWEST_STEPS:
        found.append(f"only {summary.steady} steady steps")
    if ended.get("reason") == "duration":
        found.append("did not end in time")
    steady_ns = summary.spread.mean * summary.steady
    if summary.stall_ns > STALLED * steady_ns:
        found.append("stalled")
    if facts.loop_ns is not None:
        spans = np.array([(s.t0_ns, s.t1_ns) for s in facts.throttles if s.mask & _TROUBLE], np.int64)
        slow = covered(spans.reshape(-1, 2), *facts.loop_ns)
        if slow > THROTTLED * (facts.loop_ns[1] - facts.loop_ns[0]):
            found.append("throttled")
    return tuple(found)


def _failure(facts: Facts, ended: Mapping[str, Any], output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    code = ended.get("code")
    why = f"the command ended with status {code}" if code else facts.lacks or "it had no steady step"
    return f"a recording of the experiment gave nothing: {why}" + (f"; it said: {lines[-1]}" if lines else "")
