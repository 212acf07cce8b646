"""The command line that starts a recording. Pure: the window and the experiments use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.paths import own_command


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def record_command(
    *,
    output: Path | None = None,
    workload: str | None = None,
    settings: Mapping[str, Any] | None = None,
    command: Sequence[str] = (),
    data: Path | None = None,
    duration_s: float | None = None,
    steps: int | None = None,
    trace_steps: int | None = None,
    trace_every_s: float | None = None,
    rate_hz: float | None = None,
    name: str = "",
    notes: str = "",
    force: bool = False,
    json_result: bool = False,
    control: bool = False,
    lifeline: bool = False,
    intervene: Mapping[str, Any] | None = None,
) -> list[str]:
    """argv of `stepscope record` for a workload or a command of the user's.

    `settings` are the workload's, by name. The command's working directory is
    that of the process which runs this argv.
    """
    args: list[str] = ["record"]
    options: list[tuple[str, Any]] = [
        ("-o", output), ("--workload", workload), ("--data", data), ("--duration", duration_s),
        ("--steps", steps), ("--trace-steps", trace_steps), ("--trace-every", trace_every_s),
        ("--rate", rate_hz), ("--name", name or None), ("--notes", notes or None),
        ("--intervene", json.dumps(dict(intervene)) if intervene else None),
    ]
    for option, value in options:
        if value is not None:
            # "=" keeps a value that starts with a dash from being read as an option
            args += [f"{option}={value}"] if option.startswith("--") else [option, str(value)]
    for key, value in (settings or {}).items():
        args += ["--set", f"{key}={_value(value)}"]
    flags = (("--force", force), ("--json", json_result), ("--control", control), ("--lifeline", lifeline))
    args += [flag for flag, wanted in flags if wanted]
    if command:
        args += ["--", *command]
    return own_command(*args)


def monitor_command(
    *,
    output: Path | None = None,
    pid: int | None = None,
    duration_s: float | None = None,
    rate_hz: float | None = None,
    name: str = "",
    notes: str = "",
    control: bool = False,
) -> list[str]:
    """argv of `stepscope monitor`: the machine, or a process that runs already."""
    args: list[str] = ["monitor"]
    options: list[tuple[str, Any]] = [
        ("-o", output), ("--pid", pid), ("--duration", duration_s), ("--rate", rate_hz),
        ("--name", name or None), ("--notes", notes or None),
    ]
    for option, value in options:
        if value is not None:
            args += [f"{option}={value}"] if option.startswith("--") else [option, str(value)]
    if control:
        args.append("--control")
    return own_command(*args)
