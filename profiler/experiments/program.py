"""What an experiment starts, again and again: a workload with its settings, or the user's own command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.errors import TargetError, UsageError
from profiler.experiments.child import Child
from profiler.record.metadata import environment
from profiler.record.start import record_command

if TYPE_CHECKING:
    from profiler.run.reader import Run

# Who started a process, and which of several it is, are not for one that is started alone.
_OF_THE_START = re.compile(r"(SLURM_|(LOCAL_|GROUP_)?RANK$|(LOCAL_)?WORLD_SIZE$|MASTER_"
                           r"|VIRTUAL_ENV$|CONDA_|LD_PRELOAD$)")
NO_ROOM = 1 << 16  # bytes free, with which no run file can be made
_PLACEHOLDER = re.compile(r"\{(\{[A-Za-z_]\w*\})\}|\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Program:
    """A workload with settings, or a command; the other one of the two is empty.

    `environment` goes over our own. `rate_hz`: samples per second, None for the default.
    """

    cwd: Path
    workload: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    rate_hz: float | None = None

    def changed(self, values: Mapping[str, Any]) -> Program:
        """The same with other settings of the workload."""
        return replace(self, settings={**self.settings, **values})

    def told(self) -> str:
        """What is started, where, and with which variables that are not ours: a run may be a stranger's.

        Empty for a workload of ours that gets no such variable.
        """
        given = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()
                 if os.environ.get(name) != value]
        if self.workload is not None and not given:
            return ""
        what = f"the workload {self.workload}" if self.workload is not None else shlex.join(self.command)
        return f"It starts {what} in {self.cwd}" + (f" with {' '.join(given)}" if given else "")

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Names that the command holds as {name}, each once, in their order. {{name}} is a plain {name}."""
        found = [match[2] for word in self.command for match in _PLACEHOLDER.finditer(word) if match[2]]
        return tuple(dict.fromkeys(found))

    def filled(self, values: Mapping[str, Any]) -> Program:
        """The same with values for placeholders of its command. Those without a value stay.

        Where a value is put in, {{name}} becomes {name}; other braces are left as they are.
        """
        def put(match: re.Match[str]) -> str:
            return match[1] or (str(values[match[2]]) if match[2] in values else match[0])

        return replace(self, command=tuple(_PLACEHOLDER.sub(put, word) for word in self.command))

    def argv(self, output: Path, *, limit_s: float, steps: int | None = None, name: str = "",
             intervene: Mapping[str, Any] | None = None, trace_steps: int | None = None) -> list[str]:
        """Of one recording that ends after `steps`, and after `limit_s` at the latest.

        `trace_steps`: in a window of so many steps the framework's profiler runs.
        """
        settings = dict(self.settings)
        ends_itself = self.workload is not None and "steps" in settings
        if ends_itself and steps is not None:
            settings["steps"] = steps
        return record_command(
            output=output, workload=self.workload, settings=settings, command=self.command, data=self.data,
            duration_s=round(limit_s, 1), steps=None if ends_itself else steps, rate_hz=self.rate_hz,
            name=name, control=True, lifeline=True, intervene=intervene, trace_steps=trace_steps)

    def record(self, output: Path, *, limit_s: float, steps: int | None = None, name: str = "",
               intervene: Mapping[str, Any] | None = None, trace_steps: int | None = None,
               tick: Callable[[float], None] = lambda seconds: None) -> Path:
        """Record it once into `output`; `tick(seconds)` is called meanwhile. It ends when we end.

        UsageError when `output` exists: an old one must never be taken for what is
        measured now. TargetError when no run file came of it, or it does not end.
        """
        if output.exists():
            raise UsageError(f"{output} exists already", "Name another folder with --keep")
        argv = self.argv(output, limit_s=limit_s, steps=steps, name=name, intervene=intervene,
                         trace_steps=trace_steps)
        child = Child(argv, self.cwd, self.environment, output.with_suffix(".log"))
        try:
            child.wait(limit_s, tick)
        finally:
            child.end()
        if not output.exists():
            full = shutil.disk_usage(output.parent).free < NO_ROOM
            why = child.complaint() or ("the disk is full" if full else "no run file")
            raise TargetError(f"a recording of the experiment failed: {why}")
        return output


def of_run(run: Run) -> Program:
    """What a run recorded, to be started again. UsageError with the reason when it cannot be."""
    _check_repeatable(run)
    return recorded_program(run.meta)


def recorded_program(meta: Mapping[str, Any]) -> Program:
    """What a run with this `meta` recorded, whether or not it can be started again."""
    began = meta.get("kind") == "record"  # others watch, or come from a trace
    command = tuple(str(word) for word in meta.get("command") or ()) if began else ()
    workload = meta.get("workload") if began else None
    return Program(
        cwd=Path(str(meta.get("cwd") or ".")), workload=workload["name"] if workload else None,
        settings=dict(workload["settings"]) if workload else {},
        data=_data(command) if workload else None, command=() if workload else command,
        environment=_environment(meta.get("environment")), rate_hz=meta.get("rate_hz"))


def _check_repeatable(run: Run) -> None:
    """UsageError with the reason when the run cannot be started again."""
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
    """What of the run's environment belongs to the program, not to how it was started.

    No more than what a recording keeps, and not LD_PRELOAD: a run from somebody else could start code
    of theirs with it, of which nothing is said on the screen.
    """
    known = told if isinstance(told, Mapping) else {}
    kept = environment({str(k): str(v) for k, v in known.items()})
    return {name: value for name, value in kept.items() if not _OF_THE_START.match(name)}
