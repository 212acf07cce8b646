"""Where a step's time goes, as far as stages and device lag can tell without a trace.

It has the shape of the partition that a trace gives (definitions, section 3): the
classes sum to the step. The device lies at the boundary before a stage `lag` behind
the host, and takes `device` for the stage; so it is behind by lag + device - host at
the end of it. A stage that leaves it behind was the device's work throughout. One at
whose end it has caught up went at the pace of the host: only what was left over from
before is surely work of the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiler.analysis.summary import StepSummary

BEHIND_NS = 100_000  # less is launch latency, not a queue
WORK = ("forward", "backward", "optimizer")
CROWDED = 0.05  # share of a step without a core, from which stages are longer than what they do
UNSURE = 0.05  # of a wait for a core, which was counted at other times than the steps


@dataclass(frozen=True)
class Estimate:
    """Mean ns of a step by class; they sum to it.

    `measured` is false where device times or lag are missing: then a wait under a busy
    device counts as exposed, and the split between compute and host rests on
    utilization alone.
    """

    input: float
    transfer: float
    compute: float
    host: float
    measured: bool
    communication: float = 0.0  # waiting for other ranks, see analysis.together

    @property
    def step_ns(self) -> float:
        return self.input + self.transfer + self.compute + self.host + self.communication

    def waiting(self, ns: float) -> Estimate:
        """The same with so much of compute, and where that is less of host, as waiting for other ranks."""
        of_compute = min(ns, self.compute)
        of_host = min(ns - of_compute, self.host)
        return replace(self, compute=self.compute - of_compute, host=self.host - of_host,
                       communication=self.communication + of_compute + of_host)

    def paused(self, ns: float) -> Estimate:
        """The same with so much of compute as host work: a collection of garbage computes nothing."""
        moved = min(ns, self.compute)
        return replace(self, compute=self.compute - moved, host=self.host + moved)

    def share(self, name: str) -> float:
        return float(getattr(self, name)) / self.step_ns if self.step_ns else 0.0

    def gain(self, name: str) -> float:
        """The step time over the step time without this class: at most this much faster."""
        rest = self.step_ns - float(getattr(self, name))
        return self.step_ns / max(rest, 0.001 * self.step_ns) if self.step_ns >= 1 else 1.0


def estimate(summary: StepSummary, on_device: bool, utilization: float | None = None,
             waiting: float | None = None) -> Estimate:
    """Of the steady steps. On a CPU run the CPU is the device: stages are the classes.

    `utilization`: NVML's, mean over the steady steps. `waiting`: share of the time in which the loop's
    thread could run and had no core. On a CPU run that is neither a wait for data nor host work.
    """
    stages, step = summary.stages, summary.step_ns
    if not on_device:
        return _of_cpu(summary, waiting or 0.0)
    busy = None if utilization is None else utilization * step
    if summary.exposed is None or any(name not in summary.device for name in WORK):
        hidden = max(0.0, (busy or 0.0) - (step - stages["data"]))  # no other place to run in
        exposed = max(0.0, stages["data"] - hidden)
        transfer = min(stages["h2d"], step - exposed)
        compute = min(busy or 0.0, step - exposed - transfer)
        return Estimate(exposed, transfer, compute, step - exposed - transfer - compute, False)
    exposed = summary.exposed
    transfer = min(summary.device.get("h2d", 0.0), step - exposed)
    at_least = sum(_busy(summary, stage) for stage in WORK)
    at_most = sum(summary.device[stage] for stage in WORK)
    # Inside a blocking read the host waits for kernels: that part is the device's too.
    at_least = min(at_most, at_least + (summary.sync or 0.0))
    compute = at_least if busy is None else min(max(busy, at_least), at_most)
    compute = min(compute, step - exposed - transfer)
    return Estimate(exposed, transfer, compute, step - exposed - transfer - compute, True)


def _of_cpu(summary: StepSummary, waiting: float) -> Estimate:
    """The stages. Where the cores are crowded what the thread does takes longer, in all stages alike.

    So a data wait is what the thread slept, and what it worked in it stretched as all its work is. Single
    waits for a core that fell into it are compute's.
    """
    stages, step, cpu = summary.stages, summary.step_ns, summary.thread_cpu
    data = stages["data"]
    if waiting >= CROWDED and cpu and summary.data_cpu is not None:
        slept = max(0.0, step - cpu - (1 + UNSURE) * waiting * step)
        data = min(data, slept + summary.data_cpu * max(1.0, (step - slept) / cpu))
    compute = sum(stages[stage] for stage in WORK) + stages["data"] - data
    return Estimate(data, stages["h2d"], compute, stages["other"], True)


def behind(summary: StepSummary, stage: str) -> float:
    """How far the device is behind the host at the end of a stage, in ns."""
    return summary.lag.get(stage, 0.0) + summary.device.get(stage, 0.0) - summary.stages[stage]


def _busy(summary: StepSummary, stage: str) -> float:
    took = summary.device[stage]
    if behind(summary, stage) > max(BEHIND_NS, 0.02 * summary.step_ns):
        return took
    return min(took, summary.lag.get(stage, 0.0))

