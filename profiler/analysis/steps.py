"""The steps of one process, as arrays. Definitions, sections 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profiler.analysis.series import BoolArray, FloatArray, IntArray
from profiler.model import STAGES, STEP_EVALUATION, STEP_PARTIAL

if TYPE_CHECKING:
    from profiler.run.reader import Run

MOST_STEPS = 1 << 18  # that are looked at: the columns of them all are in memory meanwhile
EXTRAS = ("samples", "data_cpu", "thread_cpu", "optimizer_calls", "syncs", "sync")
DEVICE_STAGES = ("h2d", "forward", "backward", "optimizer")
LAG_STAGES = ("data", "h2d", "forward", "backward", "optimizer")


@dataclass(frozen=True)
class Steps:
    """n steps of one process in order of time. Times in ns.

    `stages` has every name of model.STAGES, int64[n]; they sum to `wall` exactly.
    `extras`, `device` (by CUDA events) and `lag` (the device behind the host at the
    start of a stage) are float64[n], NaN where nothing was measured.
    """

    process: int | None
    index: IntArray
    t0_ns: IntArray
    t1_ns: IntArray
    flags: IntArray
    stages: Mapping[str, IntArray]
    extras: Mapping[str, FloatArray]
    device: Mapping[str, FloatArray]
    lag: Mapping[str, FloatArray]
    unit: str = "samples"  # what `extras["samples"]` counts

    def __len__(self) -> int:
        return len(self.t1_ns)

    @property
    def wall(self) -> IntArray:
        return self.t1_ns - self.t0_ns

    @property
    def training(self) -> BoolArray:
        """Complete steps of the training loop."""
        return self.flags & (STEP_EVALUATION | STEP_PARTIAL) == 0

    @property
    def counted(self) -> BoolArray:
        """Steps that the loop made: also the last one, whose end is not known, where it has worked."""
        worked = sum(self.stages[stage] for stage in ("forward", "backward", "optimizer")) > 0
        return (self.flags & STEP_EVALUATION == 0) & ((self.flags & STEP_PARTIAL == 0) | worked)

    def select(self, mask: BoolArray) -> Steps:
        """The steps that `mask` picks."""
        return Steps(
            self.process, self.index[mask], self.t0_ns[mask], self.t1_ns[mask], self.flags[mask],
            stages={name: values[mask] for name, values in self.stages.items()},
            extras={name: values[mask] for name, values in self.extras.items()},
            device={name: values[mask] for name, values in self.device.items()},
            lag={name: values[mask] for name, values in self.lag.items()},
            unit=self.unit,
        )


def step_processes(run: Run) -> list[int]:
    """Ids of the processes that sent steps."""
    return sorted({track.process for track in run.find("step.wall") if track.process is not None})


def training_process(run: Run) -> int | None:
    """The process whose steps the run is about: most training steps, then most steps. None without any."""
    return max(step_processes(run), key=lambda process: how_many(run, process), default=None)


def how_many(run: Run, process: int) -> tuple[int, int]:
    """(training steps, all steps) of a process. Of very many the newest tell which share trains."""
    tracks = run.find("step.flags", process=process)
    if not tracks:
        return 0, 0
    total = run.count(tracks[0].id)
    first_ns, _ = from_when(run, process, None, None)
    flags = _whole(_values(run, process, "step.flags", first_ns, None)[1])
    training = int((flags & (STEP_EVALUATION | STEP_PARTIAL) == 0).sum())
    return (training if total <= MOST_STEPS else round(total * training / max(len(flags), 1))), total


def from_when(run: Run, process: int | None, t0_ns: int | None, t1_ns: int | None) -> tuple[int | None, int]:
    """The time from which on MOST_STEPS steps of a process end in [t0_ns, t1_ns], and how many do before it.

    (t0_ns, 0) where there are no more than that.
    """
    for track in run.find("step.wall", process=process) if process is not None else ():
        first = 0 if t0_ns is None else run.count(track.id, t0_ns)
        last = run.count(track.id, None if t1_ns is None else t1_ns + 1)
        if last - first > MOST_STEPS:
            return run.time_of(track.id, last - MOST_STEPS), last - MOST_STEPS - first
    return t0_ns, 0


def load_steps(run: Run, process: int | None = None, t0_ns: int | None = None,
               t1_ns: int | None = None) -> Steps:
    """The steps of a process (default: the training process) that ended in [t0_ns, t1_ns]."""
    if process is None:
        process = training_process(run)
    end, wall = _values(run, process, "step.wall", t0_ns, t1_ns)

    def column(metric: str) -> FloatArray:
        return _aligned(end, *_values(run, process, metric, t0_ns, t1_ns))

    walls = _whole(wall)
    unit, per_sample = work(run)
    extras = {name: column(f"step.{name}") for name in EXTRAS}
    extras["samples"] = extras["samples"] * per_sample
    measured = {stage: column(f"step.{stage}") for stage in STAGES if stage != "other"}
    return Steps(
        process=process,
        index=_whole(column("step.index")),
        t0_ns=end - walls,
        t1_ns=end,
        flags=_whole(column("step.flags")),
        stages=partition(walls, {stage: _whole(values) for stage, values in measured.items()}),
        extras=extras,
        device={stage: column(f"step.device_{stage}") for stage in DEVICE_STAGES},
        lag={stage: column(f"step.lag_{stage}") for stage in LAG_STAGES},
        unit=unit,
    )


def work(run: Run) -> tuple[str, int]:
    """What throughput counts, and how many of it a row of a batch holds: ("tokens", 256) for text."""
    workload = run.meta.get("workload")
    told = workload.get("work") if isinstance(workload, dict) else None
    match told:
        case [str(unit), int(n)] if n > 0:
            return unit, n
    return "samples", 1


def partition(wall: IntArray, stages: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Stages that sum to `wall` exactly: the rest is `other`, and no stage reaches beyond the step."""
    names = [stage for stage in STAGES if stage != "other"]
    reach = np.zeros_like(wall)
    result: dict[str, IntArray] = {}
    for stage in names:
        start = reach
        reach = np.minimum(wall, reach + np.maximum(stages.get(stage, np.zeros_like(wall)), 0))
        result[stage] = reach - start
    result["other"] = wall - reach
    return result


def _values(run: Run, process: int | None, metric: str, t0_ns: int | None,
            t1_ns: int | None) -> tuple[IntArray, FloatArray]:
    tracks = run.find(metric, process=process) if process is not None else []
    if not tracks:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    return run.values(tracks[0].id, t0_ns, t1_ns)


def _aligned(wanted: IntArray, t_ns: IntArray, values: FloatArray) -> FloatArray:
    """`values` at the times `wanted`, NaN where there is none: all of a step carry its end."""
    if len(wanted) == len(t_ns) and np.array_equal(wanted, t_ns):
        return values
    result = np.full(len(wanted), np.nan)
    if len(t_ns):
        at = np.minimum(np.searchsorted(t_ns, wanted), len(t_ns) - 1)
        found = t_ns[at] == wanted
        result[found] = values[at[found]]
    return result


def _whole(values: FloatArray) -> IntArray:
    """Whole numbers; what is none, or more than any real value of a damaged run, within their range."""
    return np.rint(np.clip(np.nan_to_num(values), -2.0**62, 2.0**62)).astype(np.int64)
