"""What an experiment on a remedy will do: which command, with which settings, how often, how long."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.analysis.facts import Facts
from profiler.errors import UsageError
from profiler.experiments.arm import stall_share
from profiler.experiments.change import Tried, changed, current, first_testable, same_cause, testable, unfit
from profiler.experiments.program import Program, of_run, recorded_program
from profiler.model import mapping
from profiler.rules.base import Finding, Prediction, Remedy
from profiler.rules.verdict import Diagnosis
from profiler.rules.words import setting as setting_text

if TYPE_CHECKING:
    from profiler.run.reader import Run

OF_EPOCHS = ("persistent_workers",)  # they change how epochs begin, not the steady step
STEPS, AFTER_WARM_UP = 60, 30  # of one recording
LONG_S = 60.0  # of steps in one recording; fewer steps are done where they take longer
FEWEST_STEPS = 20
END_S = 1.0  # of a recording after its last step


@dataclass(frozen=True)
class Plan:
    """An experiment. A is the run as it was, B the same with `remedy`. Times in s.

    `finding`: whose remedy it is; None where the user named a setting that no finding does.
    `step_s`: of a step in the run. `begin_s`: from the start of a recording to its first step.
    `both`: A is changed as well, to the remedy's value before. `stalls`: the share of steady
    time that rare stalls take in the run.
    """

    finding: Finding | None
    remedy: Remedy
    program: Program
    steps: int
    pairs: int
    step_s: float
    begin_s: float
    notes: tuple[str, ...] = field(default=())
    both: bool = False
    stalls: float = 0.0

    @property
    def of_epochs(self) -> bool:
        """Whether the step time is that of all steps after the first one, epoch starts included."""
        return self.remedy.setting in OF_EPOCHS

    @property
    def prediction(self) -> Prediction | None:
        return self.finding.prediction if self.finding else None

    def start(self, arm: str) -> tuple[Program, dict[str, Any] | None]:
        """What is started in arm "a" or "b", and what the probe changes in it."""
        if arm == "a" and not self.both:
            return self.program, None
        value = self.remedy.before if arm == "a" else self.remedy.after
        return changed(self.program, self.remedy.setting, value)

    def expected_s(self, arm: str) -> float:
        """How long one recording will take."""
        gain = self.prediction.speedup if arm == "b" and self.prediction else 1.0
        return self.begin_s + self.steps * self.step_s / gain + END_S

    def budget_s(self, pairs: int) -> float:
        """How long so many pairs will take."""
        return pairs * (self.expected_s("a") + self.expected_s("b"))


def make_plan(run: Run, diagnosis: Diagnosis, wanted: str | None = None, pairs: int = 5,
              steps: int | None = None, tried: Tried | None = None, program: Program | None = None) -> Plan:
    """UsageError when nothing that is asked can be tested, or the run cannot be repeated.

    `wanted`: a rule's name or a number in the list of findings; else the first that can be tested.
    `tried`: a setting in place of a finding. `program`: what was recorded, where the run does not
    tell it: a command with placeholders.
    """
    facts = diagnosis.facts
    if facts.summary is None:  # a finding of the run's trace
        raise UsageError(f"{diagnosis.source} has no steady steps to compare with", "Record more steps")
    given, program = program, program or recorded_program(run.meta)
    if not (program.workload or program.command):
        of_run(run)  # which says why
    finding: Finding | None
    if tried is None:
        finding = _choose(diagnosis, wanted, program)
        remedy = finding.remedy
        assert remedy is not None
    else:
        before = current(tried.setting, program, _known(facts)) if tried.before is None else tried.before
        if tried.before is None and before == tried.after:
            raise UsageError(f"{tried.setting} is {setting_text(before)} already",
                             f"Name another value, or compare two: {tried.setting}=A,B")
        remedy = Remedy(tried.setting, before, tried.after)
        finding = _of_the_same(diagnosis, remedy)
    if given is None:
        program = of_run(run)
    begun, step_s = facts.loop_ns, facts.summary.step_ns / 1e9
    return Plan(
        finding=finding, remedy=remedy, program=program, pairs=pairs,
        both=tried is not None and tried.before is not None,
        steps=steps or _steps(facts.summary.total, facts.steady.warm_up, step_s, remedy),
        step_s=step_s, begin_s=(begun[0] - run.start_ns) / 1e9 if begun else 5.0,
        notes=_notes(run, program), stalls=stall_share(facts))


def _choose(diagnosis: Diagnosis, wanted: str | None, program: Program) -> Finding:
    if wanted is None:
        chosen = first_testable(diagnosis.findings, program)
        if chosen is None:
            raise UsageError(f"no finding of {diagnosis.source} names a setting to test",
                             f"The verdict is {diagnosis.verdict}: {diagnosis.decision.reason}. "
                             "--try SETTING=VALUE tests any")
        return chosen
    findings = list(diagnosis.findings)
    named = [f for f in findings if f.rule == wanted]
    if wanted.isdigit() and 1 <= int(wanted) <= len(findings):
        named = [findings[int(wanted) - 1]]
    if not named:
        known = ", ".join(f"{k} {f.rule}" for k, f in enumerate(findings, 1)) or "none"
        raise UsageError(f"there is no finding {wanted}", f"The findings are: {known}")
    found = next((f for f in named if testable(f.remedy, program)), named[0])
    if not testable(found.remedy, program):
        why = unfit(found.remedy.setting, found.remedy.after, program) if found.remedy else found.advice
        raise UsageError(f"the finding {found.rule} has no setting to test",
                         why or "Others may: see stepscope diagnose")
    return found


def _known(facts: Facts) -> dict[str, Any]:
    """What the probe could change, as the run had it."""
    return {**facts.loader, **facts.readings.numerics, "threads": facts.torch_threads}


def _of_the_same(diagnosis: Diagnosis, remedy: Remedy) -> Finding | None:
    """The finding that suggests just this change."""
    return next((f for f in diagnosis.findings if f.remedy and same_cause(f.remedy.setting, remedy.setting)
                 and (f.remedy.before, f.remedy.after) == (remedy.before, remedy.after)), None)


def _steps(total: int, warm_up: int, step_s: float, remedy: Remedy) -> int:
    """Enough for a steady median, no more than the run had, and no longer than about a minute."""
    wanted = total if remedy.setting in OF_EPOCHS else max(STEPS, warm_up + AFTER_WARM_UP)
    if step_s > 0:
        wanted = min(wanted, max(FEWEST_STEPS, round(LONG_S / step_s)))
    return max(1, min(wanted, total + 1))  # the last one has no end of its own


def _notes(run: Run, program: Program) -> tuple[str, ...]:
    found = []
    command = run.meta.get("command") or ()
    if program.workload and command and not _same_python(Path(command[0]), Path(sys.executable)):
        found.append(f"The run was made with {command[0]}, the experiment with {sys.executable}")
    loaded = mapping(run.meta.get("environment")).get("LD_PRELOAD")
    if loaded and os.environ.get("LD_PRELOAD") != loaded:
        found.append(f"The run was made with LD_PRELOAD={loaded}, the experiment without: no run file may "
                     "set it. Set it for verify")
    return tuple(found)


def _same_python(one: Path, other: Path) -> bool:
    """Of one environment, whether it was called python or python3."""
    return one == other or (one.parent == other.parent and one.resolve() == other.resolve())
