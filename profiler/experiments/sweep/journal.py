"""The finished runs of a sweep, a JSON line each: what --resume goes on from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiler.errors import RunError, UsageError
from profiler.experiments import lines
from profiler.experiments.sweep.measure import Measured
from profiler.experiments.sweep.subject import Point

NAME = "sweep.jsonl"


def identity(point: Point) -> str:
    """The same for points with the same values, in whatever order."""
    return json.dumps(dict(point), sort_keys=True)


@dataclass
class Journal:
    """Runs by group and point, in the order in which they were finished.

    A group is a comparison of its own: a grid has one, each step of a descent has one.
    With `path` None nothing is kept on disk.
    """

    path: Path | None = None
    runs: dict[tuple[str, str], list[Measured]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    damaged: int = 0  # lines that are none

    def of(self, group: str, point: Point) -> list[Measured]:
        """The finished runs of a point; not a copy."""
        return self.runs.setdefault((group, identity(point)), [])

    def every(self) -> list[Measured]:
        return [run for runs in self.runs.values() for run in runs]

    def add(self, group: str, point: Point, measured: Measured) -> None:
        """Keep a finished run, on disk first. RunError when that cannot be written."""
        self._append({"group": group, "point": dict(point), **measured.to_json()})
        self.of(group, point).append(measured)

    def note(self, name: str, value: Any) -> None:
        """Keep something else that was found out, under a name."""
        self._append({"note": name, "value": value})
        self.notes[name] = value

    def _append(self, told: Mapping[str, Any]) -> None:
        if self.path is not None:
            lines.append(self.path, told)


def begin(folder: Path, program: Mapping[str, Any], resume: bool) -> Journal:
    """A new journal in `folder`, or with `resume` the one that is there.

    `program`: what is started and where, which a sweep that goes on must share.
    UsageError when there is one already and it is not to be gone on with, or it is of
    something else; RunError when the folder cannot be used.
    """
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = path.exists()
    except OSError as error:
        raise RunError(f"the folder {folder} cannot be made: {error.strerror}",
                       "Name another one with -o") from error
    if there and not resume:
        raise UsageError(f"{folder} holds a sweep already",
                         "Go on with it by --resume, or name another folder with -o")
    if there:
        return _resumed(path, json.loads(json.dumps(dict(program))))
    if resume:
        raise UsageError(f"{folder} holds no sweep to go on with", "Name its folder with -o")
    journal = Journal(path)
    journal.note("program", dict(program))
    return journal


def _resumed(path: Path, program: Mapping[str, Any]) -> Journal:
    journal = load(path)
    before = journal.notes.get("program")
    if not isinstance(before, dict):
        raise UsageError(f"{path} is no journal of a sweep", "Name another folder with -o")
    for name in sorted(before.keys() | program.keys()):
        if before.get(name) != program.get(name):
            raise UsageError(f"the sweep in {path.parent} has another {name}: {before.get(name)}",
                             f"Here it is {program.get(name)}; name another folder with -o")
    return journal


def load(path: Path) -> Journal:
    """What is there. A torn last line and lines that are none are left out and counted."""
    told, damaged = lines.read(path)
    journal = Journal(path, damaged=damaged)
    for line in told:
        try:
            if "note" in line:
                journal.notes[str(line["note"])] = line["value"]
            else:
                journal.of(str(line["group"]), dict(line["point"])).append(Measured.from_json(line))
        except (ValueError, TypeError, KeyError):
            journal.damaged += 1
    return journal
