"""What an experiment on a finding will do: which command, with which settings, how often, how long."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.errors import UsageError
from profiler.record.start import record_command
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
# Who started a process, and which of several it is: not for one that is started alone.
_OF_THE_START = re.compile(r"(SLURM_|(LOCAL_|GROUP_)?RANK$|(LOCAL_)?WORLD_SIZE$|MASTER_"
                           r"|VIRTUAL_ENV$|CONDA_)")


@dataclass(frozen=True)
class Plan:
    """An experiment. A is the run as it was, B the same with `remedy`. Times in s.

    `step_s`: of a step in the run. `begin_s`: from the start of a recording to its first step.
    """

    finding: Finding
    remedy: Remedy
    steps: int
    pairs: int
    cwd: Path
    workload: str | None
    settings: Mapping[str, Any]
    data: Path | None
    command: tuple[str, ...]
    environment: Mapping[str, str]
    rate_hz: float | None
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

    def recording(self, arm: str, output: Path, limit_s: float) -> list[str]:
        """argv of one recording, of arm "a" or "b", that ends after `limit_s` at the latest."""
        settings = dict(self.settings)
        ends_itself = self.workload is not None and "steps" in settings
        if ends_itself:
            settings["steps"] = self.steps
        return record_command(
            output=output, workload=self.workload, settings=settings, command=self.command, data=self.data,
            duration_s=round(limit_s, 1), steps=None if ends_itself else self.steps, rate_hz=self.rate_hz,
            name=f"verify {arm.upper()}", control=True, lifeline=True,
            intervene={self.remedy.setting: self.remedy.after} if arm == "b" else None)

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
    command, cwd = _repeatable(run)
    workload = run.meta.get("workload")
    begun = diagnosis.facts.loop_ns
    step_s = summary.step_ns / 1e9
    return Plan(
        finding=finding, remedy=remedy, pairs=pairs,
        steps=steps or _steps(summary.total, diagnosis.facts.steady.warm_up, step_s, remedy), cwd=cwd,
        workload=workload["name"] if workload else None,
        settings=dict(workload["settings"]) if workload else {},
        data=_data(command) if workload else None, command=() if workload else tuple(command),
        environment=_environment(run.meta.get("environment")), rate_hz=run.meta.get("rate_hz"),
        step_s=step_s, begin_s=(begun[0] - run.start_ns) / 1e9 if begun else 5.0,
        notes=_notes(command, bool(workload)))


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


def _repeatable(run: Run) -> tuple[list[str], Path]:
    """Command and folder of a run that can be started again. UsageError with the reason otherwise."""
    meta = run.meta
    if run.state == "recording":
        raise UsageError(f"{run.path} is still being recorded", "Stop it, or wait for its end")
    command = [str(word) for word in meta.get("command") or ()]
    if meta.get("kind") != "record" or not command:
        kind = {"monitor": "watches without starting", "import": "comes from a trace"}.get(
            str(meta.get("kind")), "has no command")
        raise UsageError(f"{run.path} {kind}: there is no command to repeat",
                         "Use stepscope record -- COMMAND")
    if str((meta.get("environment") or {}).get("WORLD_SIZE", "1")) not in ("", "0", "1"):
        raise UsageError(f"{run.path} is one process of several", "Record the launcher (torchrun) as a whole")
    cwd = Path(str(meta.get("cwd") or "."))
    if not cwd.is_dir():
        raise UsageError(f"the run's working directory {cwd} is gone", "Record again, then verify that run")
    if not meta.get("workload"):
        _check_command(command, cwd)
    return command, cwd


def _check_command(command: Sequence[str], cwd: Path) -> None:
    program = command[0]
    there = (cwd / program).is_file() if "/" in program else shutil.which(program) is not None
    if not there:
        raise UsageError(f"the run's command {program} is gone", "Record again, then verify that run")
    if Path(program).name.startswith("python"):
        script = next((word for word in command[1:] if not word.startswith("-")), "")
        if script.endswith(".py") and "-m" not in command and not (cwd / script).is_file():
            raise UsageError(f"the run's script {cwd / script} is gone", "Record again, then verify that run")


def _data(command: Sequence[str]) -> Path | None:
    return next((Path(word[7:]) for word in command if word.startswith("--data=")), None)


def _environment(told: Any) -> dict[str, str]:
    """What of the run's environment belongs to the program, not to how it was started."""
    known = told if isinstance(told, Mapping) else {}
    return {str(k): str(v) for k, v in known.items() if not _OF_THE_START.match(str(k))}


def _steps(total: int, warm_up: int, step_s: float, remedy: Remedy) -> int:
    """Enough for a steady median, no more than the run had, and no longer than about a minute."""
    wanted = total if remedy.setting in OF_EPOCHS else max(STEPS, warm_up + AFTER_WARM_UP)
    if step_s > 0:
        wanted = min(wanted, max(FEWEST_STEPS, round(LONG_S / step_s)))
    return max(1, min(wanted, total + 1))  # the last one has no end of its own


def _notes(command: Sequence[str], workload: bool) -> tuple[str, ...]:
    if workload and command and Path(command[0]) != Path(sys.executable):
        return (f"The run was made with {command[0]}, the experiment with {sys.executable}",)
    return ()
