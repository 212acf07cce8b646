"""What a sweep varies: settings of a workload, placeholders of a command, what the probe sets, variables."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profiler import catalog
from profiler.errors import UsageError
from profiler.experiments.change import LOADER, PROBE, WORKERS, changed, way
from profiler.experiments.program import Program
from profiler.experiments.sweep.points import Raw, text

Point = Mapping[str, Any]
OF_WORKERS = ("prefetch_factor", "persistent_workers")  # without workers they mean nothing
_WORKLOAD, _PROBE = "workload", "probe"


@dataclass(frozen=True)
class Subject:
    """A program and the keys that are varied in it.

    `base` are a workload's settings as given, "name=value". `program` holds placeholders unfilled.
    """

    program: Program
    keys: tuple[str, ...]
    base: tuple[str, ...] = ()

    def way(self, key: str) -> str:
        """How a key is varied: workload, placeholder, probe, environment; "" when it cannot be."""
        if self.program.workload is not None and key == catalog.SIZE:
            return _WORKLOAD
        return way(key, self.program)

    def typed(self, raw: Raw) -> dict[str, Any]:
        """The point with its values' types. UsageError for a value that a key cannot have."""
        return {key: self._typed(key, value) for key, value in raw.items()}

    def _typed(self, key: str, value: str) -> Any:
        how = self.way(key)
        if how == _PROBE:
            return catalog.parse_value((LOADER | PROBE)[key], value)
        if how != _WORKLOAD or self.program.workload is None:
            return value
        info = catalog.get(self.program.workload)
        if key == catalog.SIZE:
            catalog.parse_settings(info, [f"{key}={value}"])  # it is known
            return value
        return catalog.parse_value(info.setting(key), value)

    def unfit(self, point: Point) -> str:
        """Why this combination cannot be run; "" when it can."""
        try:
            self._settings(point)
        except UsageError as error:
            return error.message
        return ""

    def _settings(self, point: Point) -> dict[str, Any]:
        """The workload's, all of them; empty for a command. UsageError when they exclude each other."""
        if self.program.workload is None:
            return {}
        own = {key: value for key, value in point.items() if self.way(key) == _WORKLOAD}
        given = [pair for pair in self.base if pair.partition("=")[0].strip().replace("-", "_") not in own]
        return catalog.parse_settings(catalog.get(self.program.workload),
                                      [*given, *(f"{key}={text(value)}" for key, value in own.items())])

    def effective(self, point: Point) -> Point:
        """The point without what means nothing in it: two points of the same are one."""
        if self.way(WORKERS) == _PROBE and point.get(WORKERS) == 0:
            return {key: value for key, value in point.items() if key not in OF_WORKERS}
        return point

    def intervene(self, point: Point) -> dict[str, Any]:
        """What the probe is to set."""
        return {key: value for key, value in self.effective(point).items() if self.way(key) == _PROBE}

    def at(self, point: Point) -> Program:
        """What is started for a point."""
        program = replace(self.program, settings=self._settings(point))
        program = program.filled({key: value for key, value in point.items() if key in program.placeholders})
        for key, value in point.items():
            if self.way(key) == "environment":
                program, _ = changed(program, key, value)
        return program

    def command(self, point: Point) -> str:
        """The command line that runs with this point, to be copied into a shell."""
        program, wanted = self.at(point), self.intervene(point)
        own = [f"--intervene={json.dumps(wanted)}"] if wanted else []
        words = list(program.command)
        if program.workload is not None:
            options = catalog.setting_options(catalog.get(program.workload), program.settings)
            data = [f"--data={program.data}"] if program.data is not None else []
            words = ["stepscope", "record", "--workload", program.workload, *options, *data, *own]
        elif wanted:
            words = ["stepscope", "record", *own, "--", *words]
        variables = [f"{key}={shlex.quote(str(value))}" for key, value in point.items()
                     if self.way(key) == "environment"]
        return " ".join([*variables, shlex.join(words)])

    def in_code(self, point: Point) -> str:
        """Loader settings as the script would have them: DataLoader(..., num_workers=4); "" without any."""
        told = {key: value for key, value in self.intervene(point).items() if key in LOADER}
        return f"DataLoader(..., {', '.join(f'{k}={v!r}' for k, v in told.items())})" if told else ""


def of_workload(name: str, settings: Sequence[str], keys: Sequence[str], data: Path | None,
                cwd: Path) -> Subject:
    """UsageError for unknown names, for settings that cannot be, and for `steps` as a key."""
    info = catalog.get(name)
    pairs = tuple(pair.strip() for pair in settings)
    values = catalog.parse_settings(info, pairs)
    if data is not None:
        data = data.absolute()
        catalog.check_data(name, data)
    subject = Subject(Program(cwd, workload=name, settings=values, data=data), tuple(keys), pairs)
    for key in keys:
        if key == "steps":
            raise UsageError("steps is not a setting to sweep", "--steps N sets the steps of every run")
        if not subject.way(key):
            info.setting(key)  # it tells what is like it
    return subject


def of_command(command: Sequence[str], keys: Sequence[str], cwd: Path) -> Subject:
    """UsageError for a command that is not there, a placeholder without values, and a key that is none."""
    subject = Subject(Program(cwd, command=tuple(command)), tuple(keys))
    placeholders = subject.program.placeholders
    for name in placeholders:
        if name not in keys:
            raise UsageError(f"the placeholder {{{name}}} has no values",
                             f"Add --grid {name}=A,B, or write {{{{{name}}}}} for the braces themselves")
    for key in keys:
        if not subject.way(key):
            raise UsageError(f"{key} occurs nowhere in the command",
                             f"Write {{{key}}} where its value goes; without that there are "
                             f"{', '.join([*LOADER, *PROBE])}, and variables in capitals")
    if not Program(cwd, command=(command[0],)).placeholders:
        check_found(command[0])
    return subject


def check_found(program: str) -> None:
    """UsageError where there is no such program."""
    if shutil.which(program) is None:
        raise UsageError(f"command not found: {program}", "Check its spelling, or give its path")


def choose(subject: Subject, raws: Sequence[Raw]) -> tuple[list[Point], list[tuple[Point, str]]]:
    """Points to measure, and those skipped with their reason. UsageError when none is left."""
    points: list[Point] = []
    skipped: list[tuple[Point, str]] = []
    seen: list[Point] = []
    for raw in raws:
        point = subject.typed(raw)
        if point in points:
            continue
        reason = subject.unfit(point)
        if not reason and subject.effective(point) in seen:
            reason = "without workers it is the same as another point"
        if reason:
            skipped.append((point, reason))
            continue
        seen.append(subject.effective(point))
        points.append(point)
    if not points:
        raise UsageError("no combination can be run", skipped[0][1] if skipped else "")
    return points, skipped
