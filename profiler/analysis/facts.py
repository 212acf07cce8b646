"""All that the rules look at, gathered once: steps, device, live signals and the loader's settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from profiler.analysis.crowding import Crowding, crowding
from profiler.analysis.devices import SHARED, card_of, used_device
from profiler.analysis.estimate import Estimate, estimate
from profiler.analysis.pauses import Pause, inside_work, load_pauses
from profiler.analysis.rates import mean_inside
from profiler.analysis.readings import Readings, readings
from profiler.analysis.series import IntArray, Throttles, covered, intervals, throttles
from profiler.analysis.steady import FEWEST, Steady, steady
from profiler.analysis.steps import Steps, from_when, load_steps
from profiler.analysis.summary import StepSummary, summarise
from profiler.analysis.together import waits
from profiler.model import Device, Event, Process, mapping

if TYPE_CHECKING:
    from profiler.run.reader import Run

LIVE = ("gpu.util", "gpu.power", "gpu.clock_sm", "gpu.mem_used", "gpu.temperature", "gpu.pcie_rx",
        "gpu.mem_util", "gpu.sm_active", "gpu.sm_occupancy", "gpu.tensor_active", "gpu.dram_active",
        "gpu.other_processes", "host.cpu", "target.cpu", "target.workers_cpu", "target.workers",
        "target.waiting")
PEAKS = ("gpu.pcie_gen", "gpu.pcie_width")  # the highest counts: an idle card slows its link down
HEALTH = ("xid", "ecc", "rows", "nvlink", "device_lost")  # kinds of events
OF_LOOP = ("loop.system", "loop.waiting", "loop.faults", "loop.switches")
HEAD = 2000  # steps that hold any warm-up
EARLIER = "earlier"
# Reasons that make single steps differ. A power cap is how a busy GPU lives.
_LEFT_OUT = 0x08 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True)
class Facts:
    """What a recording says about one process's loop.

    `live`: means over the steady steps' time, of PEAKS the highest. On a slice of MIG what holds for the
    whole card (clocks, temperature, the link) is the card's; what all slices add up to (power) is missing.
    `summary` and `estimate` are None when no step is steady. `lacks` says why nothing
    can be claimed, "" when something can.
    """

    process: Process | None
    on_device: bool
    device: Device | None
    steps: Steps
    steady: Steady
    summary: StepSummary | None
    estimate: Estimate | None
    lacks: str
    cores: int  # usable by the target: of its affinity, and of its share where a container has one
    machine_cores: int
    live: Mapping[str, float]
    throttles: Throttles
    throttled_ns: int
    loop_ns: tuple[int, int] | None  # from the first training step's start to the last one's end
    loader: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)  # what the recorder says of it
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = None  # of our own workload; None for a script
    sites: Mapping[str, Any] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    pauses: tuple[Pause, ...] = ()  # that the probe saw in the loop
    # Of every rank that makes its steps together with this one, itself too: ns a step that it waits.
    ranks: Mapping[int, float] = field(default_factory=dict)
    # ns a batch that the loader takes alone, by its workers: measured by `stepscope ceilings`.
    loader_alone: Mapping[int, float] = field(default_factory=dict)
    card: Device | None = None  # that `device` is a slice of, or is
    throttle_known_ns: int = 0  # of the loop's time, in which reasons of throttling were read
    # Errors that device and card reported, over the whole run; without a loop those of every GPU.
    health: tuple[Event, ...] = ()

    @property
    def rank(self) -> int | None:
        """Of a distributed job; None outside one."""
        if self.process is None:
            return None
        told = self.process.properties.get("rank")  # the target itself learns its rank after its start
        return self.process.rank if self.process.rank is not None else told if isinstance(told, int) else None

    def site(self, hook: str) -> str | None:
        """The first "file:line" of the user's code that was seen for a hook."""
        lines = self.sites.get(hook)
        return str(lines[0]) if isinstance(lines, list) and lines else None

    @property
    def no_gpu(self) -> str:
        """Why the GPU of the loop cannot be judged, where there is none."""
        if len(self.steps) and not self.on_device:
            return "the loop runs on the CPU"
        return self.lacks if self.process is None else "no GPU was watched"

    @property
    def others(self) -> float | None:
        """Share of the machine's cores that other programs keep busy; None when it was not measured."""
        if "host.cpu" not in self.live or "target.cpu" not in self.live:
            return None
        return min(1.0, max(0.0, self.live["host.cpu"] - self.live["target.cpu"] / self.machine_cores))

    @cached_property
    def crowding(self) -> Crowding | None:
        """Who has the cores while the loop's thread waits for one; None where that was not measured."""
        if self.summary is None:
            return None
        cpu = (self.summary.thread_cpu or 0.0) / self.summary.step_ns if self.summary.step_ns else 0.0
        return crowding(self.live, cpu, self.cores, self.machine_cores)

    @property
    def torch_threads(self) -> int | None:
        """Threads that one operator of torch uses in the loop's process; None where they are not told."""
        value = self.process.properties.get("torch_threads") if self.process else None
        return value if isinstance(value, int) and value > 0 else None

    @property
    def workers(self) -> int | None:
        """Worker processes of the training loader; None without one of torch's."""
        value = self.loader.get("num_workers")
        return value if isinstance(value, int) else None


def gather(run: Run, process: int | None, t0_ns: int | None = None, t1_ns: int | None = None) -> Facts:
    """Facts of a process over the run, or over the steps that ended in [t0_ns, t1_ns]."""
    told = next((p for p in run.processes if p.id == process), None)
    properties = told.properties if told else {}
    on_device = uses_device(run, process, properties)
    device = used_device(run, process, properties) if on_device else None
    every, steps, since, earlier = _steps(run, process, t0_ns, t1_ns)
    begun = _extent(steps)
    card = card_of(run, device) if device is not None else None
    slow, slow_known_ns = _throttles(run, card, begun)
    state = steady(steps, slow.of(_LEFT_OUT), since) if len(every) else steady(every)
    summary = summarise(steps, state, on_device)
    if earlier and summary is not None:
        state = replace(state, left_out={**state.left_out, EARLIER: earlier})
        summary = replace(summary, total=summary.total + earlier, whole_throughput=None,
                          earlier_ns=float(steps.t0_ns[0] - every.t0_ns[0]) if t0_ns is None else 0.0)
    lacks = _lacks(run, process, every, steps, state)
    live = {**_live(run, device, card, _extent(steps.select(state.mask))),
            **_of_loop(run, process, steps, state, summary)}
    pauses = load_pauses(run, process, begun)
    return Facts(
        process=told, on_device=on_device, device=device, card=card,
        health=_health(run, *((device, card) if told else run.devices)),
        steps=steps, steady=state, summary=summary,
        estimate=_estimate(summary, on_device, live, steps.select(state.mask), pauses),
        lacks=lacks, cores=min(_cores(run, "cores_usable"), _quota(run)), machine_cores=_cores(run, "cores"),
        live=live,
        throttles=slow, throttled_ns=covered(slow.times, *begun) if begun else 0,
        throttle_known_ns=slow_known_ns,
        loop_ns=begun, loader=mapping(properties.get("loader")),
        machine=mapping(run.meta.get("machine")), environment=mapping(run.meta.get("environment")),
        settings=mapping(run.meta["workload"]).get("settings", {}) if run.meta.get("workload") else None,
        sites=mapping(properties.get("sites")),
        readings=readings(run, process, properties, device, steps, state.mask),
        pauses=pauses, loader_alone=_loader_alone(run),
    )


def _steps(run: Run, process: int | None, t0_ns: int | None,
           t1_ns: int | None) -> tuple[Steps, Steps, int | None, int]:
    """All steps; those that ended in [t0_ns, t1_ns]; the end of the warm-up where these do not hold it;
    how many before them are left out. Of a run of very many only the first and the newest are read."""
    if from_when(run, process, None, None)[0] is None:
        every = load_steps(run, process)
        if t0_ns is None and t1_ns is None:
            return every, every, None, 0
        inside = (every.t1_ns >= (t0_ns or 0)) & (every.t1_ns <= (t1_ns or 1 << 62))
        return every, every.select(inside), steady(every).warm_up_end_ns, 0
    every = load_steps(run, process, None, run.time_of(run.find("step.wall", process=process)[0].id, HEAD))
    first_ns, earlier = from_when(run, process, t0_ns, t1_ns)
    return every, load_steps(run, process, first_ns, t1_ns), steady(every).warm_up_end_ns, earlier


def _loader_alone(run: Run) -> dict[int, float]:
    """Of the newest measurement that is kept in the run; empty without one."""
    told = mapping(mapping((run.results("ceilings") or [{}])[-1]).get("loader_ms"))
    return {int(workers): ms * 1e6 for workers, ms in told.items()
            if workers.isdecimal() and len(workers) < 9 and isinstance(ms, int | float) and 0 < ms < math.inf}


def _estimate(summary: StepSummary | None, on_device: bool, live: Mapping[str, float], counted: Steps,
              pauses: Sequence[Pause]) -> Estimate | None:
    if summary is None:
        return None
    shares = estimate(summary, on_device, live.get("gpu.util"), live.get("loop.waiting"))
    return shares if on_device else shares.paused(inside_work(pauses, counted, summary.recurring))


def together(every: Sequence[Facts]) -> list[Facts]:
    """The same; where they are ranks of one job, with how long each waits for the others."""
    known = [(facts.rank, facts.summary) for facts in every]
    summaries = [summary for rank, summary in known if rank is not None and summary is not None]
    found = waits(summaries, all(facts.on_device for facts in every),
                  [facts.live.get("loop.waiting") for facts in every if facts.summary is not None])
    if len(summaries) < len(every) or found is None or len({rank for rank, _ in known}) < len(every):
        return list(every)
    ranks = {rank: wait for (rank, _), wait in zip(known, found, strict=True) if rank is not None}
    return [replace(facts, ranks=ranks, estimate=facts.estimate and facts.estimate.waiting(wait))
            for facts, wait in zip(every, found, strict=True)]


def uses_device(run: Run, process: int | None, properties: Mapping[str, Any]) -> bool:
    """Whether the process's work runs on an accelerator: its probe timed one, or uses its allocator."""
    if process is None:
        return False
    metrics = ("step.device_forward", "step.device_backward", "step.lag_data", "torch.mem_allocated")
    torch = mapping(properties.get("torch"))
    return bool(torch.get("device_count")) or any(run.find(m, process=process) for m in metrics)


def _extent(steps: Steps) -> tuple[int, int] | None:
    return (int(steps.t0_ns[0]), int(steps.t1_ns[-1])) if len(steps) else None


def _lacks(run: Run, process: int | None, every: Steps, steps: Steps, state: Steady) -> str:
    if process is None:
        if run.meta.get("kind") == "monitor":
            return "the machine was watched, no command: only a recorded command has steps"
        absent = [event.text for event in run.events() if event.kind == "probe_absent"]
        return absent[-1].rstrip(".") if absent else \
            "no step was seen: no loop of torch was found in the command"
    if not len(steps):
        return "no step ended in this time"
    if state.kind == "evaluation" and every.training.any():
        return "no training step ended in this time, only evaluation"
    count = int(state.mask.sum())
    if count >= FEWEST:
        return ""
    left = ", ".join(f"{n} {reason}" for reason, n in state.left_out.items())
    return f"only {count} of {len(steps)} steps are steady ({left or 'no other'}); a claim needs {FEWEST}"


def _throttles(run: Run, device: Device | None,
               extent: tuple[int, int] | None) -> tuple[Throttles, int]:
    """(times of throttling, of how many ns it is known whether there was any)."""
    if device is None or extent is None:
        return Throttles(), 0
    for track in run.find("gpu.throttle", device=device.id):
        t_ns, masks = run.values(track.id, *extent)
        return throttles(t_ns, masks), covered(intervals(t_ns, np.ones(len(t_ns), bool)), *extent)
    return Throttles(), 0


def _health(run: Run, *devices: Device | None) -> tuple[Event, ...]:
    ids = {device.id for device in devices if device is not None}
    return tuple(event for event in run.events() if event.kind in HEALTH and event.device in ids)


def _live(run: Run, device: Device | None, card: Device | None,
          extent: tuple[int, int] | None) -> dict[str, float]:
    if extent is None:
        return {}
    means = {m: _mean(run, m, (card if m in SHARED else device) if m.startswith("gpu.") else None, extent)
             for m in (*LIVE, *PEAKS)}
    return {metric: mean for metric, mean in means.items() if mean is not None}


def _of_loop(run: Run, process: int | None, steps: Steps, state: Steady,
             summary: StepSummary | None) -> dict[str, float]:
    """Means over the steady steps without rare stalls: their time, and what the loop's thread did then."""
    if summary is None or process is None:
        return {}
    usual = steps.select(state.mask).select(~summary.stalls)
    spans = np.stack((usual.t0_ns, usual.t1_ns), axis=1)
    means = {m: mean_inside(*run.values(track.id), spans) for m in OF_LOOP
             for track in run.find(m, process=process)}
    return {metric: mean for metric, mean in means.items() if mean is not None}


def _mean(run: Run, metric: str, device: Device | None, extent: tuple[int, int] | None) -> float | None:
    if metric.startswith("gpu.") and device is None:
        return None
    tracks: IntArray | list[Any] = run.find(metric, device=device.id) if device else run.find(metric)
    for track in tracks:
        _, values = run.values(track.id, *(extent or ()))
        if len(values):
            return float(values.max() if metric in PEAKS else values.mean())
    return None


def _cores(run: Run, kind: str) -> int:
    value = mapping(run.meta.get("machine")).get(kind)
    return value if isinstance(value, int) and value > 0 else 1


def _quota(run: Run) -> int:
    """Whole cores of a container's share; no limit where there is none."""
    value = mapping(run.meta.get("machine")).get("cores_quota")
    return max(1, int(value)) if isinstance(value, int | float) and value > 0 else 1 << 20
