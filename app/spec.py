"""What to start: a workload, the user's own command, or only a look at the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from profiler.record.start import monitor_command, record_command

Capture = Literal["light", "trace", "traces"]


@dataclass(frozen=True)
class LaunchSpec:
    """One recording to start. Exactly one of `workload`, `command` and `watch` is given.

    `capture` is light (no profiler window), trace (one window of `trace_steps`)
    or traces (one every `trace_every_s` seconds).
    """

    name: str = ""
    workload: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None
    command: tuple[str, ...] = ()  # the whole argv: interpreter, script, arguments
    cwd: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # on top of ours
    watch: bool = False  # the machine, without a target
    pid: int | None = None  # with `watch`: a process that runs already
    capture: Capture = "light"
    trace_steps: int = 8
    trace_every_s: float | None = None
    rate_hz: float | None = None  # None: the recorder's default
    output: Path | None = None  # None: a new file in the folder of runs
    duration_s: float | None = None
    steps: int | None = None
    notes: str = ""

    def argv(self) -> list[str]:
        """The command line of the recorder, controlled through its standard input."""
        if self.watch:
            return monitor_command(
                output=self.output, pid=self.pid, duration_s=self.duration_s, rate_hz=self.rate_hz,
                name=self.name, notes=self.notes, control=True,
            )
        return record_command(
            output=self.output, workload=self.workload, settings=self.settings, command=self.command,
            data=self.data, duration_s=self.duration_s, steps=self.steps,
            trace_steps=None if self.capture == "light" else self.trace_steps,
            trace_every_s=self.trace_every_s if self.capture == "traces" else None,
            rate_hz=self.rate_hz, name=self.name, notes=self.notes, control=True,
        )

    @property
    def title(self) -> str:
        """What to call it before the run file has a name."""
        if self.name:
            return self.name
        if self.workload:
            return self.workload
        if self.command:
            scripts = [a for a in self.command[1:] if not a.startswith("-")]
            return Path(scripts[0] if scripts else self.command[0]).name
        return f"process {self.pid}" if self.pid is not None else "this machine"
