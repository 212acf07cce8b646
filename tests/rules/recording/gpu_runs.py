"""Planned runs of a loop on a GPU, with what the probe and NVML tell beside the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from profiler.analysis.facts import Facts, gather
from profiler.analysis.steps import training_process
from profiler.rules.base import Finding
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import MS, UUID, Planned, at, make_run

GIB = 1 << 30
STAGES = {"data": 1.0, "h2d": 1.0, "forward": 6.0, "backward": 8.0, "optimizer": 2.0, "other": 2.0}
# A device that computes for 95 of 100 ms, and is always behind.
BUSY: dict[str, Any] = {
    "stages": {"data": 1, "h2d": 1, "forward": 5, "backward": 6, "optimizer": 2, "other": 85},
    "device": {"h2d": 1, "forward": 33, "backward": 60, "optimizer": 5},
    "lag": {"data": 90, "h2d": 90, "forward": 90, "backward": 118, "optimizer": 172}}
H200 = {"compute_capability": "9.0", "pcie_gen": 5, "pcie_width": 16, "pcie_width_now": 16,
        "power_limit_w": 700.0, "max_clock_sm": 1980}
FLOAT32 = {"matmul_precision": "highest", "cudnn_tf32": True, "cudnn_benchmark": False, "autocast": None,
           "weights": {"float32": 1000}, "convolutions": False}
SHAPES = {"batches": 60, "changes": 0, "distinct": 1, "common": [64, 3, 8, 8], "common_batches": 60,
          "more": 0, "smallest": [64, 3, 8, 8], "largest": [64, 3, 8, 8]}


def gpu_facts(path: Path, *, torch: Mapping[str, Planned] | None = None,
              of_process: Mapping[str, Planned] | None = None, device_is: Mapping[str, Any] | None = None,
              users: Mapping[int, tuple[str, float | None]] | None = None, every_ms: float = 100.0,
              busy: Mapping[int, float] | None = None, health: Sequence[tuple[Any, ...]] = (),
              memory_total: int = 140 * GIB, out_of_memory: Mapping[str, Any] | None = None,
              **planned: Any) -> Facts:
    """Facts of a planned run.

    `torch`: metric to value (by number of the reading), of device and process; `of_process`: of the process
    alone. `users`: pid to (whose, bytes) in NVML's list, `busy`: pid to its share. Other arguments are those
    of tests.runs.make_run. `health`: events of the device as (kind, severity, text, data), or of another one
    whose UUID comes last.
    """
    planned.setdefault("gpu", {"gpu.util": 0.95})
    steps = planned.setdefault("steps", 60)
    stages = planned.setdefault("stages", STAGES)
    longest = sum(max(at(p, k) or 0 for k in range(steps)) for p in stages.values())

    def put(writer: RunWriter, start: int) -> None:
        device = writer.add_device(UUID, 0, "NVIDIA H200", memory_total=memory_total,
                                   properties={**H200, **(device_is or {})})
        tracks = [(writer.track(m, device=device, process=1), plan) for m, plan in (torch or {}).items()]
        tracks += [(writer.track(m, process=1), plan) for m, plan in (of_process or {}).items()]
        for pid, (whose, size) in (users or {}).items():
            who = {"whose": whose}
            for metric, value in (("gpu.process_mem", size), ("gpu.process_util", (busy or {}).get(pid))):
                if value is not None:
                    tracks.append((writer.track(metric, device=device, index=pid, properties=who), value))
        for kind, severity, text, data, *uuid in health:
            whose = writer.add_device(uuid[0], 1, "NVIDIA H200") if uuid else device
            writer.event(start + 600 * MS, kind, severity, text, device=whose, data=data)
        if out_of_memory:
            writer.event(start + MS, "out_of_memory", "error", "ran out", process=1, data=out_of_memory)
        for tick in range(int(steps * longest / every_ms) + 8):
            for track, plan in tracks:
                if (value := at(plan, tick)) is not None:
                    writer.sample(track, start + round((500 + tick * every_ms) * MS), value)

    with Run.open(make_run(path, events=put, **planned)) as run:
        return gather(run, training_process(run))


def with_new_shapes(path: Path, extra_ms: float, **planned: Any) -> Facts:
    """Facts of steps of 20 ms, of which every third brings a new shape and takes so much longer."""
    def forward(k: int) -> float:
        return STAGES["forward"] + (extra_ms if k % 3 == 0 else 0.0)

    def put(writer: RunWriter, start: int) -> None:
        track, t = writer.track("batch.shapes", process=1), start + 500 * MS
        for k in range(60):
            if k % 3 == 0:
                writer.sample(track, t + MS // 2, k // 3 + 1)
            t += round((sum(STAGES.values()) - STAGES["forward"] + forward(k)) * MS)

    stages = {**STAGES, "forward": forward}
    with Run.open(make_run(path, stages=stages, events=put, **planned)) as run:
        return gather(run, training_process(run))


def memory(**planned: Planned) -> dict[str, Planned]:
    """Readings of a loop that has 10 GiB between steps, 40 at the peak and 44 reserved."""
    return {"torch.mem_allocated": 10 * GIB, "torch.mem_peak": 40 * GIB, "torch.mem_reserved": 44 * GIB,
            "torch.alloc_retries": 0, "torch.ooms": 0, **planned}


def finding(rule: ModuleType, facts: Facts) -> Finding:
    """The only finding of a rule, which has what each must have."""
    outcome = rule.check(facts)
    assert len(outcome.findings) == 1, outcome
    found: Finding = outcome.findings[0]
    assert found.evidence and (found.remedy or found.advice)
    return found


def evidence(found: Finding, text: str) -> Any:
    """The value of the first evidence that begins with a text."""
    return next(e.value for e in found.evidence if e.text.startswith(text))
