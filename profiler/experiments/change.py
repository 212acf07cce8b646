"""Which settings an experiment can change, and how: the only place that decides what is testable."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from profiler import catalog
from profiler.catalog import Setting
from profiler.errors import UsageError
from profiler.experiments.program import Program
from profiler.rules.base import Finding, Remedy

WORKERS = "num_workers"
ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]*\Z")  # how a variable is written that a setting can be
_OWN_NAMES = {"workers": WORKERS}  # of workloads, for what the loader calls otherwise


def _setting(name: str, kind: str, low: float | None = None, high: float | None = None,
             choices: tuple[str, ...] = (), group: str = "Loader") -> Setting:
    return Setting(name, kind, None, "", "", group, low, high, choices, name)


LOADER = {setting.name: setting for setting in (
    _setting(WORKERS, "int", 0, 256), _setting("prefetch_factor", "int", 1, 64),
    _setting("pin_memory", "bool"), _setting("persistent_workers", "bool"))}
# What the probe sets in any program, with the loop's code untouched.
PROBE = {setting.name: setting for setting in (
    _setting("matmul_precision", "choice", choices=("highest", "high", "medium"), group="Compute"),
    _setting("cudnn_benchmark", "bool", group="Compute"),
    _setting("threads", "int", 1, 1024, group="Run"))}


@dataclass(frozen=True)
class Tried:
    """A change that the user named. `before`: the value that A gets; None leaves it as it is."""

    setting: str
    before: Any
    after: Any


def way(setting: str, program: Program) -> str:
    """How `setting` is changed in `program`: workload, probe, placeholder, environment; "" when it cannot be.

    A workload's own setting goes before that of its loader: it is checked before anything runs. So does a
    placeholder of the command: it would be left open.
    """
    if not program.workload and not program.command:
        return ""
    if program.workload and setting in program.settings:
        return "workload"
    if setting in program.placeholders:  # the command asks for it by this name: {threads}
        return "placeholder"
    if setting in LOADER or setting in PROBE:
        return "probe"
    return "environment" if ENVIRONMENT.match(setting) else ""


def testable(remedy: Remedy | None, program: Program) -> bool:
    """Whether an experiment can run `program` with the remedy."""
    return remedy is not None and not unfit(remedy.setting, remedy.after, program)


def first_testable(findings: Sequence[Finding], program: Program) -> Finding | None:
    """The one that an experiment tests where none is named: one with a prediction goes first."""
    good = [finding for finding in findings if testable(finding.remedy, program)]
    return next((finding for finding in good if finding.prediction), good[0] if good else None)


def unfit(setting: str, value: Any, program: Program) -> str:
    """Why `program` cannot be run with this value of the setting; "" when it can."""
    how = way(setting, program)
    if not how:
        return f"{setting} is nothing that can be changed here"
    if how != "workload" or not program.workload:
        return ""
    try:
        info = catalog.get(program.workload)
        problems = catalog.check(info, {**program.settings, setting: value})
    except (UsageError, TypeError) as error:  # a run of a workload that is gone, or had other settings
        return str(error)
    return problems.get(setting) or next(iter(problems.values()), "")


def changed(program: Program, setting: str, value: Any) -> tuple[Program, dict[str, Any] | None]:
    """The program with this value, and what the probe is to change in it."""
    how = way(setting, program)
    if how == "workload":
        return program.changed({setting: value}), None
    if how == "placeholder":
        return program.filled({setting: value}), None
    if how == "environment":
        return replace(program, environment={**program.environment, setting: str(value)}), None
    return program, {setting: value}


def current(setting: str, program: Program, known: Mapping[str, Any]) -> Any:
    """The value that the program has; None where it is not known. `known`: what its run says of it."""
    how = way(setting, program)
    if how == "workload":
        return program.settings[setting]
    if how == "environment":
        return program.environment.get(setting, os.environ.get(setting))
    return known.get(setting)


def parse_tried(given: str, program: Program) -> Tried:
    """Of "setting=after" or "setting=before,after". UsageError for what `program` cannot be run with."""
    setting, equals, text = (part.strip() for part in given.partition("="))
    setting = setting.replace("-", "_")
    if not equals or not setting or not text:
        raise UsageError(f"--try {given} names no value", "Write SETTING=VALUE, for example num_workers=4")
    how = way(setting, program)
    # a variable's value may have commas of its own
    values = [text] if how == "environment" else [value.strip() for value in text.split(",")]
    if len(values) > 2:
        raise UsageError(f"--try {given} has {len(values)} values",
                         "Two are compared; stepscope sweep takes more")
    if how == "placeholder" and len(values) < 2:
        raise UsageError(f"--try {given} has one value", f"Write {setting}=BEFORE,AFTER")
    known = [_typed(setting, value, program) for value in values]
    return Tried(setting, known[0] if len(known) == 2 else None, known[-1])


def _typed(setting: str, text: str, program: Program) -> Any:
    how = way(setting, program)
    if how in ("placeholder", "environment"):
        return text
    if how == "workload" and program.workload:
        value = catalog.parse_value(catalog.get(program.workload).setting(setting), text)
    elif how == "probe":
        value = catalog.parse_value((LOADER | PROBE)[setting], text)
    else:
        names = dict.fromkeys([*program.placeholders, *program.settings, *LOADER, *PROBE])
        raise UsageError(f"{setting} is nothing that can be changed here",
                         f"There are {', '.join(names)}, environment variables in capitals, and "
                         "{name} in a command after --")
    if reason := unfit(setting, value, program):
        raise UsageError(f"{setting}={text} cannot be used: {reason}")
    return value


def same_cause(one: str, other: str) -> bool:
    """Whether two names mean the same setting: a workload has a name of its own for the loader's workers."""
    return _OWN_NAMES.get(one, one) == _OWN_NAMES.get(other, other)

