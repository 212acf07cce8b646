"""What the side pane says: stages, steady state, events, how far the run is. On the worker; free of Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.live.state import Live
from profiler.analysis.energy_use import Energy, energy
from profiler.analysis.facts import Facts, gather
from profiler.analysis.series import POWER_CAP
from profiler.analysis.summary import StepSummary
from profiler.metrics import stage_title
from profiler.model import STAGES, Attachment, Event
from profiler.run.reader import Run
from profiler.units import (
    clock,
    format_count,
    format_energy,
    format_ms,
    format_power,
    format_rate,
)

EVENTS = 200  # newest that are listed
PAUSE_NS = 2_000_000_000  # between two times of throttling that are listed as one
QUIET = {"process", "thread"}  # kinds of events that are of no use to the reader
NOTE = 24  # letters of a remark that fit beside a value


@dataclass(frozen=True)
class StageRow:
    """A stage of the steady steps; the last row is the step. Times in ns, None where nothing was measured."""

    stage: str
    name: str
    host: str
    share: float | None
    device: str = ""
    lag: str = ""


@dataclass(frozen=True)
class FactRow:
    """Name, value and a quiet remark; `whole` says all of it where the remark is a short form."""

    name: str
    value: str
    note: str = ""
    whole: str = ""


@dataclass(frozen=True)
class EventRow:
    t: float  # s since the start
    severity: str
    kind: str
    text: str

    @property
    def time(self) -> str:
        tenths = int(self.t * 10) % 10
        return f"{clock(self.t * 1e9)}.{tenths}" if self.t >= 0 else ""


@dataclass(frozen=True)
class SideData:
    stages: tuple[StageRow, ...] = ()
    on_device: bool = False
    facts: tuple[FactRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    step: int | None = None  # number of the newest step, from 1
    steps_planned: int | None = None
    throughput: float | None = None
    unit: str = "samples/s"  # of the throughput
    gpu_absent: str = ""  # the reason; empty where there is a GPU
    lacks: str = ""  # why there are no stages


def query(run: Run, live: Live) -> SideData:
    live.refresh(run)
    facts = gather(run, live.steps.process)
    summary = facts.summary
    live.step_ms = summary.spread.median / 1e6 if summary else None
    planned = settings(run).get("steps")
    return SideData(
        stages=stage_rows(summary, facts.on_device) if summary else (),
        on_device=facts.on_device,
        facts=fact_rows(facts, summary, energy(run, [facts])) if summary else (),
        events=event_rows(run, live, facts),
        step=int(live.steps.index[-1]) + 1 if len(live.steps) else None,
        steps_planned=planned if isinstance(planned, int) and planned > 0 else None,
        throughput=summary.throughput if summary else None,
        unit=f"{summary.unit if summary else 'samples'}/s",
        gpu_absent="" if run.devices else _absent(run),
        lacks="" if _waiting(run) and not len(live.steps) else facts.lacks,
    )


def _waiting(run: Run) -> bool:
    """Whether steps may still come: not to a machine that is only watched."""
    return run.state == "recording" and run.meta.get("kind") != "monitor"


def _absent(run: Run) -> str:
    gpu = run.meta.get("gpu")
    if not isinstance(gpu, dict) or gpu.get("state") != "absent":
        return ""
    return str(gpu.get("reason") or "no GPU was found")


def settings(run: Run) -> dict[str, Any]:
    workload = run.meta.get("workload")
    found = workload.get("settings") if isinstance(workload, dict) else None
    return found if isinstance(found, dict) else {}


def stage_rows(summary: StepSummary, on_device: bool) -> tuple[StageRow, ...]:
    """Means of the steady steps, which sum to the step. A stage that never took time has no row."""
    def ms(values: Any, stage: str) -> str:
        return format_ms(values[stage], unit=False) if on_device and stage in values else ""

    rows = [
        StageRow(stage, stage_title(stage), format_ms(summary.stages[stage], unit=False),
                 summary.stages[stage] / summary.step_ns, ms(summary.device, stage), ms(summary.lag, stage))
        for stage in STAGES
        if summary.stages[stage] > 0 or stage in summary.device or stage in ("data", "other")
    ]
    device = format_ms(sum(summary.device.values()), unit=False) if on_device and summary.device else ""
    return (*rows, StageRow("", "step", format_ms(summary.step_ns, unit=False), 1.0, device))


def fact_rows(facts: Facts, summary: StepSummary, used: Energy | None = None) -> tuple[FactRow, ...]:
    spread = summary.spread
    if spread.p5 is not None and spread.p95 is not None:
        note = f"5 to 95 %: {format_ms(spread.p5, unit=False)} to {format_ms(spread.p95, unit=False)}"
    else:
        note = f"range {format_ms(spread.low, unit=False)} to {format_ms(spread.high, unit=False)}"
    rows = [FactRow("Step, median", format_ms(spread.median), note)]
    if abs(spread.mean - spread.median) > 0.05 * spread.median:
        rows.append(FactRow("Step, mean", format_ms(spread.mean), "stalls, or batches in bursts"))
    if summary.throughput is not None:
        whole = format_rate(summary.whole_throughput, unit=False)
        rows.append(FactRow("Throughput", format_rate(summary.throughput, f"{summary.unit}/s"),
                            f"whole run {whole}"))
    if facts.on_device and summary.exposed is not None:
        lag = format_ms(summary.lag.get("data"), unit=False)
        rows.append(FactRow("Exposed wait", format_ms(summary.exposed),
                            f"{format_ms(summary.stages['data'], unit=False)} less lag {lag}" if lag else ""))
    if used is not None and used.step_j is not None:
        power = f"{format_power(used.power_w)}, {used.method}"
        rows.append(FactRow("Energy", format_energy(used.step_j, "step"), power))
    left = facts.steady.left_out
    whole = ", ".join(f"{count} {reason}" for reason, count in left.items())
    note = whole if len(whole) <= NOTE else f"{format_count(sum(left.values()))} left out"
    counted = f"{format_count(summary.steady)} of {format_count(summary.total)}"
    rows.append(FactRow("Steps counted", counted, note, whole))
    return tuple(rows)


def event_rows(run: Run, live: Live, facts: Facts) -> tuple[EventRow, ...]:
    """The run's events and what the steps tell, newest first."""
    start = run.start_ns
    absent = bool(_absent(run))
    rows = [_row(event, start, absent) for event in live.events if event.kind not in QUIET]
    told = {event.kind for event in live.events}
    if "trace" not in told:
        rows += [_trace(item, start) for item in run.attachments() if item.kind == "kineto"]
    if "warmup_end" not in told and facts.steady.settled and facts.steady.warm_up_end_ns is not None:
        rows.append(EventRow((facts.steady.warm_up_end_ns - start) / 1e9, "info", "warmup_end",
                             f"Warm-up ended at step {facts.steady.warm_up}"))
    if "throttle" not in told:
        rows += _throttles(facts, start)
    if "slow_step" not in told and facts.summary is not None:
        rows += _stalls(facts, facts.summary, start)
    rows.sort(key=lambda row: -row.t)
    return tuple(rows[:EVENTS])


def _row(event: Event, start: int, gpu_absent: bool) -> EventRow:
    text = event.text.split("\n")[0]
    library = {"nvml": "NVML", "amd": "AMD SMI"}.get(str(event.data.get("source")))
    if gpu_absent and event.kind == "source_off" and library:
        text = f"{library} absent: the GPU source is off for this run"  # the reason stands beside the charts
    name = any(mark in text.partition(" ")[0] for mark in "._")  # of a function, which is written as it is
    return EventRow((event.t_ns - start) / 1e9, event.severity, event.kind,
                    text if name else text[:1].upper() + text[1:])


def _trace(attachment: Attachment, start: int) -> EventRow:
    steps = attachment.properties.get("steps")  # first and last
    what = "Trace"
    if isinstance(steps, list) and len(steps) == 2:
        what = f"Trace of {steps[1] - steps[0] + 1} steps"
    return EventRow((attachment.t_ns - start) / 1e9, "info", "trace", f"{what}, kept in the run file")


def _throttles(facts: Facts, start: int) -> list[EventRow]:
    left = facts.steady.left_out.get("throttled")
    tail = f"; {left} steps left out" if left else ""
    return [
        EventRow((t.t0_ns - start) / 1e9, "info" if t.mask == POWER_CAP else "error", "throttle",
                 f"Throttled {t.took}, {', '.join(t.reasons)}{'' if t.mask == POWER_CAP else tail}")
        for t in facts.throttles.apart(PAUSE_NS)
    ]


def _stalls(facts: Facts, summary: StepSummary, start: int) -> Sequence[EventRow]:
    """Steps that took more than three medians, the longest ones, by the stage that was slow."""
    steps = facts.steps.select(facts.steady.mask)
    found = np.flatnonzero(summary.stalls)
    longest = found[np.argsort(steps.wall[found])[-5:]]
    rows = []
    for i in longest:
        stage = max(STAGES, key=lambda name: steps.stages[name][i] - summary.stages[name])
        rows.append(EventRow((int(steps.t0_ns[i]) - start) / 1e9, "info", "slow_step",
                             f"Slow {stage_title(stage)}: step {int(steps.index[i]) + 1} took "
                             f"{format_ms(float(steps.wall[i]))}"))
    return rows
