"""What is to be recorded: which stages of a program can be alone, how often, how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profiler.experiments.ceilings.leaning import CACHED, DEVICE, FORWARD, LOADER, REAL
from profiler.experiments.plan import AFTER_WARM_UP, END_S, FEWEST_STEPS, LONG_S, STEPS
from profiler.experiments.program import Program, of_run
from profiler.rules.verdict import diagnose

if TYPE_CHECKING:
    from profiler.analysis.facts import Facts
    from profiler.run.reader import Run

ADVISED = "loader_advised"
TITLES = {REAL: "the run as it is", LOADER: "loader alone", ADVISED: "loader alone as advised",
          CACHED: "no input (one batch kept)", DEVICE: "no input, no copies (kept on the device)",
          FORWARD: "forward alone"}
MOST = 5  # stages of a program of which nothing is known


@dataclass(frozen=True)
class Stage:
    """What the probe changes so that a stage is alone."""

    name: str
    intervene: Mapping[str, Any]

    @property
    def title(self) -> str:
        return TITLES[self.name]


@dataclass(frozen=True)
class Kind:
    """What the program turned out to be: on an accelerator, with a backward, with a loader of torch's."""

    on_device: bool
    trains: bool
    workers: int | None


@dataclass(frozen=True)
class Plan:
    """Times in s, None where no run tells them. `advised`: workers that the run's diagnosis names."""

    program: Program
    steps: int
    repeats: int
    step_s: float | None = None
    begin_s: float | None = None
    advised: int | None = None
    kind: Kind | None = None

    def expected_s(self) -> float | None:
        """Of one recording."""
        if self.step_s is None or self.begin_s is None:
            return None
        return self.begin_s + self.steps * self.step_s + END_S

    def recordings(self, kind: Kind | None = None) -> int:
        """How many there will be, at most where the program is not known yet."""
        kind = kind or self.kind
        return self.repeats * (len(stages(self, kind)[0]) if kind else MOST)


def plan_of_run(run: Run, repeats: int, steps: int | None) -> Plan:
    """To repeat what a run recorded. UsageError when it cannot be repeated."""
    program, diagnosis = of_run(run), diagnose(run)
    facts = diagnosis.facts
    summary, begun = facts.summary, facts.loop_ns
    advised = next((f.remedy.after for f in diagnosis.findings
                    if f.remedy and f.remedy.setting == "num_workers"), None)
    if summary is None or begun is None:
        return Plan(program, steps or STEPS, repeats)
    step_s = summary.step_ns / 1e9
    wanted = max(STEPS, facts.steady.warm_up + AFTER_WARM_UP)
    wanted = min(wanted, max(FEWEST_STEPS, round(LONG_S / step_s))) if step_s > 0 else wanted
    return Plan(program, steps or wanted, repeats, step_s, (begun[0] - run.start_ns) / 1e9,
                advised if isinstance(advised, int) else None, kind_of(facts))


def stages(plan: Plan, kind: Kind) -> tuple[tuple[Stage, ...], dict[str, str]]:
    """The stages that can be alone in such a program, and why others cannot be."""
    loop = {} if kind.trains else {"inference": True}
    kept = {("device_batch" if kind.on_device else "cached_batch"): True, **loop}
    found, absent = [Stage(REAL, {})], {}
    if kind.workers is None:
        return tuple(found), dict.fromkeys((LOADER, CACHED, DEVICE, FORWARD),
                                           "no DataLoader of torch's gave the loop its batches")
    alone = {"loader_only": plan.steps, **loop}
    found.append(Stage(LOADER, alone))
    if plan.advised is not None and plan.advised != kind.workers:
        found.append(Stage(ADVISED, {**alone, "num_workers": plan.advised}))
    found.append(Stage(CACHED, {"cached_batch": True, **loop}))
    if kind.on_device:
        found.append(Stage(DEVICE, kept))
    else:
        absent[DEVICE] = "on the CPU there are no copies to a device"
    if kind.trains:
        found.append(Stage(FORWARD, {**kept, "forward_only": True}))
    else:
        absent[FORWARD] = "without a backward all but the input is forward"
    return tuple(found), absent


def kind_of(facts: Facts) -> Kind:
    """What the recording of a program shows of it."""
    return Kind(facts.on_device, facts.steady.kind == "training", facts.workers)
