"""What an experiment on a finding will do: which command, with which settings, how often, how long."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.errors import UsageError
from profiler.experiments.program import Program, of_run
from profiler.rules.base import Finding, Prediction, Remedy
from profiler.rules.verdict import Diagnosis

if TYPE_CHECKING:
    from profiler.run.reader import Run

LOADER_SETTINGS = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")
OF_EPOCHS = ("persistent_workers",)  # they change how epochs begin, not the steady step
STEPS, AFTER_WARM_UP = 60, 30  # of one recording
LONG_S = 60.0  # of steps in one recording; fewer steps are done where they take longer
FEWEST_STEPS = 20
END_S = 1.0  # of a recording after its last step


@dataclass(frozen=True)
class Plan:
    """An experiment. A is the run as it was, B the same with `remedy`. Times in s.

    `step_s`: of a step in the run. `begin_s`: from the start of a recording to its first step.
    """

    finding: Finding
    remedy: Remedy
    program: Program
    steps: int
    pairs: int
    step_s: float
    begin_s: float
    notes: tuple[str, ...] = field(default=())

    @property
    def of_epochs(self) -> bool:
        """Whether the step time is that of all steps after the first one, epoch starts included."""
        return self.remedy.setting in OF_EPOCHS

    @property
    def prediction(self) -> Prediction | None:
        return self.finding.prediction

    def intervene(self, arm: str) -> dict[str, Any] | None:
        """What the probe changes in arm "a" or "b"."""
        return {self.remedy.setting: self.remedy.after} if arm == "b" else None

    def expected_s(self, arm: str) -> float:
        """How long one recording will take."""
        gain = self.prediction.speedup if arm == "b" and self.prediction else 1.0
        return self.begin_s + self.steps * self.step_s / gain + END_S

    def budget_s(self, pairs: int) -> float:
        """How long so many pairs will take."""
        return pairs * (self.expected_s("a") + self.expected_s("b"))


def make_plan(run: Run, diagnosis: Diagnosis, wanted: str | None = None, pairs: int = 5,
              steps: int | None = None) -> Plan:
    """UsageError when no finding can be tested by a loader setting, or the run cannot be repeated.

    `wanted`: a rule's name or a number in the list of findings; else the first that can be tested.
    """
    finding = _choose(diagnosis, wanted)
    remedy = finding.remedy
    summary = diagnosis.facts.summary
    assert remedy is not None
    if summary is None:  # a finding of the run's trace
        raise UsageError(f"{diagnosis.source} has no steady steps to compare with", "Record more steps")
    program = of_run(run)
    begun = diagnosis.facts.loop_ns
    step_s = summary.step_ns / 1e9
    return Plan(
        finding=finding, remedy=remedy, program=program, pairs=pairs,
        steps=steps or _steps(summary.total, diagnosis.facts.steady.warm_up, step_s, remedy),
        step_s=step_s, begin_s=(begun[0] - run.start_ns) / 1e9 if begun else 5.0,
        notes=_notes(run, program))


def _choose(diagnosis: Diagnosis, wanted: str | None) -> Finding:
    testable = [f for f in diagnosis.findings if f.remedy and f.remedy.setting in LOADER_SETTINGS]
    if wanted is None:
        chosen = next((f for f in testable if f.prediction), testable[0] if testable else None)
        if chosen is None:
            raise UsageError(f"no finding of {diagnosis.source} names a loader setting to test",
                             f"The verdict is {diagnosis.verdict}: {diagnosis.decision.reason}")
        return chosen
    findings = list(diagnosis.findings)
    named = [f for f in findings if f.rule == wanted]
    if wanted.isdigit() and 1 <= int(wanted) <= len(findings):
        named = [findings[int(wanted) - 1]]
    if not named:
        known = ", ".join(f"{k} {f.rule}" for k, f in enumerate(findings, 1)) or "none"
        raise UsageError(f"there is no finding {wanted}", f"The findings are: {known}")
    if named[0] not in testable:
        raise UsageError(f"the finding {named[0].rule} has no loader setting to test",
                         named[0].advice or "Others may: see stepscope diagnose")
    return named[0]


def _steps(total: int, warm_up: int, step_s: float, remedy: Remedy) -> int:
    """Enough for a steady median, no more than the run had, and no longer than about a minute."""
    wanted = total if remedy.setting in OF_EPOCHS else max(STEPS, warm_up + AFTER_WARM_UP)
    if step_s > 0:
        wanted = min(wanted, max(FEWEST_STEPS, round(LONG_S / step_s)))
    return max(1, min(wanted, total + 1))  # the last one has no end of its own


def _notes(run: Run, program: Program) -> tuple[str, ...]:
    command = run.meta.get("command") or ()
    if program.workload and command and Path(command[0]) != Path(sys.executable):
        return (f"The run was made with {command[0]}, the experiment with {sys.executable}",)
    return ()
