"""What to record."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

DEFAULT_RATE_HZ = 10.0
TRACE_STEPS = 8
TRACE_START_STEP = 30  # past the warm-up of most loops
TRACE_MAX_S = 20.0


@dataclass(frozen=True, slots=True)
class Options:
    """One recording, checked. Neither `command` nor `pid`: the machine is watched."""

    output: Path
    command: tuple[str, ...] = ()
    workload: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None  # the workload's, instead of what it makes
    work: tuple[str, int] = ("samples", 1)  # what a row of the workload's batch holds: ("tokens", 256)
    pid: int | None = None
    overwrite: bool = False
    renumber: bool = False  # the name is ours: where another recording is quicker, the next free one
    name: str = ""
    notes: str = ""
    rate_hz: float = DEFAULT_RATE_HZ
    duration_s: float | None = None
    steps: int | None = None
    trace_steps: int | None = None
    trace_every_s: float | None = None
    intervene: Mapping[str, Any] | None = None
    lifeline: bool = False  # the target ends with the recorder
    control: bool = False
    json_result: bool = False

    @property
    def kind(self) -> str:
        return "record" if self.command else "monitor"

    def trace(self) -> dict[str, Any] | None:
        """The window that the probe is asked for; None for a light recording."""
        if self.trace_steps is None and self.trace_every_s is None:
            return None
        steps = self.trace_steps or TRACE_STEPS
        start = TRACE_START_STEP
        if self.steps is not None:  # a short run gets its window too
            start = max(1, min(start, (self.steps - steps) // 2))
        return {"start_step": start, "steps": steps, "max_seconds": TRACE_MAX_S,
                "every_seconds": self.trace_every_s}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a recording ended. `code` is the target's exit code, below 0 for a signal, None without one."""

    output: Path
    state: str  # finished, partial
    reason: str  # ended, stopped, killed, steps, duration, terminated, detached, interrupted
    code: int | None
    steps: int
    duration_s: float
    pid: int | None = None  # of the target
    failed: str | None = None  # trouble with the run file
    told: tuple[str, ...] = ()  # what went wrong in the loops: sentences for the user

    def with_failure(self, failed: str | None) -> Outcome:
        return replace(self, failed=failed)

    def exit_meta(self) -> dict[str, Any]:
        """The run's `exit`: {code, signal, reason}; code as a shell tells it."""
        if self.code is None:
            return {"code": None, "signal": None, "reason": self.reason}
        name = signal_name(-self.code) if self.code < 0 else None
        return {"code": status_of(self.code), "signal": name, "reason": self.reason}


def signal_name(number: int) -> str:
    """SIGKILL for 9; "signal 70" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def status_of(code: int) -> int:
    """The exit status for an exit code: 128 + n after signal n."""
    return 128 - code if code < 0 else code
