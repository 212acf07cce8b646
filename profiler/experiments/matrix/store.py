"""Finished runs of a matrix, a JSON line each in a folder: what --resume goes on from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.errors import RunError, UsageError
from profiler.experiments import lines as json_lines
from profiler.version import code_digest

LINES = "matrix.jsonl"
# What a recording and its diagnosis come from: a result of other code says nothing about this one.
_CODE = (*(f"profiler/{folder}" for folder in (
    "analysis", "importers", "probe", "record", "replay", "rules", "run", "sources", "trace")), "workloads")

# What a line has, of all that is read from it.
_KINDS: Mapping[str, Any] = {
    "case": dict, "repeat": int, "state": str, "verdict": str | None, "also": list, "rules": list,
    "right": bool, "why": str, "versions": dict, "seconds": int | float, "others": int | float}


def code() -> str:
    """A digest of the code behind a result."""
    return code_digest(*_CODE)


def begin(folder: Path, resume: bool) -> None:
    """Make the folder of a new matrix, or find that of one to resume.

    UsageError when it is not as wanted, RunError when it cannot be made.
    """
    if (folder / LINES).exists() and not resume:
        raise UsageError(f"{folder} holds a matrix already",
                         "Go on with it by --resume, or name another folder with -o")
    if resume and not (folder / LINES).is_file():
        raise UsageError(f"there is no matrix in {folder} to resume", "Name its folder with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LINES).touch()
    except OSError as error:
        raise RunError(f"the folder {folder} cannot be used: {error.strerror}",
                       "Name another one with -o") from error


def add(folder: Path, line: Mapping[str, Any]) -> None:
    """Keep a finished run. RunError when that cannot be written."""
    json_lines.append(folder / LINES, {**line, "code": code()})


def key(case: Mapping[str, Any], repeat: int) -> str:
    """The same for the same case, in its JSON form, and repeat."""
    return json.dumps([case, repeat], sort_keys=True)


def finished(folder: Path) -> dict[str, dict[str, Any]]:
    """What this code came to, by `key`, in the order of the runs; nothing where there is no matrix yet."""
    if not (folder / LINES).exists():
        return {}
    found, _ = json_lines.read(folder / LINES)
    ours = code()
    return {key(line["case"], line["repeat"]): line for line in found
            if line.get("code") == ours
            and all(isinstance(line.get(name), kind) for name, kind in _KINDS.items())
            and {"kind", "name", "settings", "command"} <= line["case"].keys()}
