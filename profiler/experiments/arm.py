"""What one recording of an experiment measured, and whether it counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiler.analysis.facts import Facts, gather
from profiler.analysis.series import covered
from profiler.errors import TargetError
from profiler.experiments.loss import printed
from profiler.model import mapping
from profiler.rules.base import plural
from profiler.rules.verdict import training_processes
from profiler.rules.words import failure
from profiler.run.reader import Run

FEWEST_STEPS = 5  # steady ones
STALLED = 0.10  # share of the steady time that rare stalls take beyond what they take anyway
THROTTLED = 0.05  # share of the loop's time
MOST = 300  # letters of what a program said
LATE = "did not end in time"
_TROUBLE = 0x08 | 0x20 | 0x40 | 0x80  # NVML reasons; a power cap is how a busy GPU lives
_OURS = ("steps", "duration")  # reasons of an end that we brought about
# What programs print that the driver, torch's allocators or the kernel refused memory.
OUT_OF_MEMORY = re.compile(
    rb"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|HIP out of memory|\bMemoryError\b"
    rb"|can't allocate memory|Cannot allocate memory|CUBLAS_STATUS_ALLOC_FAILED|std::bad_alloc"
    rb"|killed by signal: Killed")


@dataclass(frozen=True)
class Arm:
    """One recording. Times in ms. `marks`: why it is left out; empty when it counts.

    `step_ms` is the mean of the steady steps without rare stalls, which predictions refer
    to as well: with workers batches come in bursts, and the median step may show no wait.
    `batch`: samples (or tokens: `work`) in a step. `latency_ms`: of the median request, where the
    program answers requests and tells it.
    """

    step_ms: float
    median_ms: float
    steady: int
    stages_ms: Mapping[str, float]
    throughput: float | None
    marks: tuple[str, ...]
    loader: Mapping[str, Any] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    told: str = "loss"  # what `losses` are
    batch: float | None = None
    work: str = "samples"
    latency_ms: float | None = None
    others: float | None = None  # share of the machine's cores that other programs kept busy

    def to_json(self) -> dict[str, Any]:
        return {"step_ms": self.step_ms, "median_ms": self.median_ms, "steady_steps": self.steady,
                "stages_ms": dict(self.stages_ms), "throughput": self.throughput, "marks": list(self.marks),
                "batch": self.batch, "latency_ms": self.latency_ms, "others": self.others}


def read_arm(path: Path, of_epochs: bool = False, steps: int | None = None, stalls: float = 0.0) -> Arm:
    """TargetError when the program failed, or made no steady step: with the reason in one line.

    `of_epochs`: the step time is the mean of all steps after the first, epoch starts included.
    `steps`: so many were asked for; a program that crashes after them has done its part.
    `stalls`: the share of steady time that rare stalls take in the program anyway.
    """
    with Run.open(path) as run:
        every = [gather(run, process) for process in training_processes(run)]
        facts = max(every, key=lambda f: f.summary.step_ns if f.summary else 0.0)
        output = b"".join(data for _, _, data in run.output())
        ended = run.meta.get("exit") or {}
        if reason := _failure(facts, ended, output, steps):
            raise TargetError(reason)
        marks = _marks(facts, ended, stalls)
        told = {event.kind: event.data or {} for event in run.events()}
    summary = facts.summary
    assert summary is not None
    what, losses = printed(output)
    return Arm(
        step_ms=(_with_starts(facts) if of_epochs else summary.step_ns) / 1e6,
        median_ms=summary.spread.median / 1e6, steady=summary.steady,
        stages_ms={name: ns / 1e6 for name, ns in summary.stages.items()}, throughput=summary.throughput,
        marks=marks, loader=facts.loader, losses=losses, told=what, batch=summary.batch,
        work=summary.unit,
        latency_ms=told.get("latency", {}).get("p50_ms"), others=facts.others)


def why_failed(ended: Mapping[str, Any], output: bytes, done: int = 0) -> str:
    """How a program failed, from its run's `exit` and what it printed, in one line; "" when it did not.

    `done`: the steps that it had made.
    """
    how = "" if ended.get("reason") in _OURS else failure(ended)
    if not how:
        return ""
    refused = [line for line in output.splitlines() if OUT_OF_MEMORY.search(line)]
    lines = refused or [line for line in output.splitlines() if line.strip()]
    if refused:
        how = f"ran out of memory and {how}"
    elif ended.get("signal") == "SIGKILL":
        how = f"{how}, as the system does when memory runs out"
    said = lines[-1].decode("utf-8", "replace").strip()[:MOST] if lines else ""
    return f"it {how}" + (f" after {plural(done, 'step')}" if done else "") + \
        (f"; it said: {said}" if said else "")


def unapplied(path: Path, wanted: Mapping[str, Any]) -> str:
    """Why an intervention of the probe was without effect; "" when each has told that it was applied.

    A loader that had the wanted setting anyway tells nothing: it is asked in `Arm.loader`.
    """
    with Run.open(path) as run:
        events = [(event.kind, mapping(event.data)) for event in run.events()]
    applied = [data for kind, data in events if kind == "intervention"]
    done = {data.get("setting") for data in applied} | {name for data in applied
                                                        for name in mapping(data.get("to"))}
    failed = {data.get("setting"): data.get("reason") for kind, data in events
              if kind == "intervention_failed"}
    for name in wanted:
        if (name in failed or name not in done) and name != "inference":
            return f"{name} was not applied: {failed.get(name) or 'nothing came to it'}"
    return ""


def stall_share(facts: Facts) -> float:
    """The share of steady time that rare stalls take above a usual step."""
    summary = facts.summary
    return summary.stall_ns / (summary.spread.mean * summary.steady) if summary else 0.0


def _with_starts(facts: Facts) -> float:
    steps = facts.steps.select(facts.steps.training)
    if len(steps) < 2:
        return float(facts.summary.step_ns) if facts.summary else 0.0
    return float(steps.t1_ns[-1] - steps.t1_ns[0]) / (len(steps) - 1)


def _marks(facts: Facts, ended: Mapping[str, Any], stalls: float) -> tuple[str, ...]:
    summary = facts.summary
    assert summary is not None
    found = []
    if summary.steady < FEWEST_STEPS:
        found.append(f"only {summary.steady} steady steps")
    if ended.get("reason") == "duration":
        found.append(LATE)
    if stall_share(facts) > STALLED + stalls:
        found.append("stalled")
    if facts.loop_ns is not None:
        slow = covered(facts.throttles.of(_TROUBLE), *facts.loop_ns)
        if slow > THROTTLED * (facts.loop_ns[1] - facts.loop_ns[0]):
            found.append("throttled")
    return tuple(found)


def _failure(facts: Facts, ended: Mapping[str, Any], output: bytes, steps: int | None) -> str:
    """Why there is nothing to compare with; "" when there is."""
    summary = facts.summary
    done = summary.total if summary else 0
    crashed = why_failed(ended, output, done)
    if crashed and (steps is None or done < steps - 1):
        return crashed
    if summary is not None:
        return ""
    late = f"it {LATE}, and " if ended.get("reason") == "duration" else ""
    return late + (facts.lacks or "no step was steady")
