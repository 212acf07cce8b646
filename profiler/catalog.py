"""The workloads we ship: what they are and what can be set, read from their files without importing torch.

A file of `workloads/` that does not start with `_` is a workload. It has a
docstring, TITLE, GROUP, ICON, UNIT, SIZES, a dataclass `Settings`, `check(settings)`
and `run(settings, data)`. With `check_data(path)` it takes the user's own data.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from profiler.errors import UsageError
from profiler.paths import HOME, entry_point

GROUPS = ("Model and data", "Loader", "Compute", "Run")  # the order of settings in a form
SIZE = "size"  # `--set size=smallest` applies a whole preset
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `minimum` and `maximum` belong to the range; None where there is no bound."""

    name: str
    type: str  # int, float, str, bool, choice, path
    default: Any
    help: str
    unit: str
    group: str
    minimum: float | None
    maximum: float | None
    choices: tuple[Any, ...]
    label: str


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """What a workload is. `sizes` are presets: name -> the settings that differ from the defaults."""

    name: str
    title: str
    group: str
    summary: str
    doc: str
    icon: str
    settings: tuple[Setting, ...]
    sizes: Mapping[str, Mapping[str, Any]]
    unit: str  # of throughput: samples or tokens
    tags: tuple[str, ...]
    data: str  # what --data takes, "" when the workload makes its own and takes none

    def setting(self, name: str) -> Setting:
        """UsageError when there is none of that name."""
        for setting in self.settings:
            if setting.name == name:
                return setting
        names = [setting.name for setting in self.settings]
        raise UsageError(f"{self.name} has no setting {name}", _close(name, names, "It has"))

    def defaults(self) -> dict[str, Any]:
        return {setting.name: setting.default for setting in self.settings}


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in (HOME / "workloads").glob("*.py") if not p.stem.startswith("_")))


def load(name: str) -> ModuleType:
    """The workload's module. UsageError naming the known ones when there is none."""
    if name not in _names():
        raise UsageError(f"there is no workload {name}", _close(name, _names(), "There are"))
    return importlib.import_module(f"workloads.{name}")


@cache
def get(name: str) -> WorkloadInfo:
    """One workload by name. UsageError naming the known ones when there is none."""
    module = load(name)
    doc = (module.__doc__ or "").strip()
    fields = sorted(dataclasses.fields(module.Settings),
                    key=lambda f: (_position(f.metadata["group"], GROUPS), f.metadata["order"]))
    return WorkloadInfo(
        name=name, title=module.TITLE, group=module.GROUP, summary=doc.partition("\n")[0].rstrip("."),
        doc=doc, icon=module.ICON, settings=tuple(map(_setting, fields)), sizes=module.SIZES,
        unit=module.UNIT, tags=tuple(getattr(module, "TAGS", ())), data=getattr(module, "DATA", ""))


def workloads() -> list[WorkloadInfo]:
    """Every workload, ordered by group and title."""
    order = ("Start here", "Vision", "Language")
    return sorted(map(get, _names()), key=lambda info: (_position(info.group, order), info.group, info.title))


def _position(value: str, order: Sequence[str]) -> int:
    return order.index(value) if value in order else len(order)


def _setting(field: dataclasses.Field[Any]) -> Setting:
    meta = field.metadata
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "str")
    return Setting(
        name=field.name, type="choice" if meta["choices"] else kind, default=field.default, help=meta["help"],
        unit=meta["unit"], group=meta["group"], minimum=meta["minimum"], maximum=meta["maximum"],
        choices=tuple(meta["choices"]), label=meta["label"])


def _close(word: str, known: Sequence[str], otherwise: str) -> str:
    near = difflib.get_close_matches(word, known, n=2)
    return f"Did you mean {' or '.join(near)}?" if near else f"{otherwise} {', '.join(known)}"


def parse_settings(info: WorkloadInfo, pairs: Sequence[str]) -> dict[str, Any]:
    """Every setting's value after `pairs` ("name=value", `size=smallest` for a preset) over the defaults.

    UsageError for an unknown name, a value that is no such type or out of range,
    and settings that exclude each other.
    """
    values = info.defaults()
    given: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"{pair!r} is no setting", "Write name=value, for example workers=2")
        if name == SIZE:
            if text not in info.sizes:
                raise UsageError(f"{info.name} has no size {text}", _close(text, list(info.sizes), "It has"))
            values |= info.sizes[text]
        else:
            given[name] = parse_value(info.setting(name), text.strip())
    values |= given
    for name, reason in check(info, values).items():
        raise UsageError(f"{name}={_text(values[name])} cannot be used: {reason}")
    return values


def parse_value(setting: Setting, text: str) -> Any:
    """The typed value of `text`. UsageError when it has none or is out of range."""
    value: Any = text
    try:
        if setting.type == "int":
            value = int(text.replace("_", ""))
        elif setting.type == "float":
            value = float(text)
        elif setting.type == "bool":
            value = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}[text.lower()]
    except (ValueError, KeyError):
        expected = {"int": "a whole number", "float": "a number", "bool": "true or false"}[setting.type]
        raise UsageError(f"{setting.name}={text} is not {expected}") from None
    if reason := _unfit(setting, value):
        raise UsageError(f"{setting.name}={text} cannot be used: {reason}")
    return value


def _unfit(setting: Setting, value: Any) -> str:
    """Why a typed value alone cannot be used, or ""."""
    low, high = setting.minimum, setting.maximum
    if setting.choices and value not in setting.choices:
        return f"it is one of {', '.join(map(str, setting.choices))}"
    if setting.type in ("int", "float"):
        if not math.isfinite(value):
            return "it must be finite"
        if (low is not None and value < low) or (high is not None and value > high):
            return f"the range is {low} to {high}"
    return ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def check(info: WorkloadInfo, values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that keep the workload from running: name -> reason. Empty when it can run."""
    unfit = {s.name: reason for s in info.settings if (reason := _unfit(s, values.get(s.name, s.default)))}
    return unfit or dict(load(info.name).check(make_settings(info.name, values)))


def not_applicable(info: WorkloadInfo, values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that mean nothing beside the others: name -> reason. A form disables them."""
    return dict(_common().not_applicable(make_settings(info.name, values)))


def advise(info: WorkloadInfo, values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that work and may surprise: name -> sentence."""
    return dict(_common().advise(make_settings(info.name, values)))


def _common() -> ModuleType:
    return importlib.import_module("workloads._common")


def make_settings(name: str, values: Mapping[str, Any]) -> Any:
    """The workload's own dataclass with `values` over its defaults."""
    return load(name).Settings(**values)


def check_data(name: str, path: Path) -> None:
    """UsageError when the workload takes no data of the user's, or this cannot be read or holds none."""
    module = load(name)
    if not hasattr(module, "check_data"):
        raise UsageError(f"{name} takes no --data", "It makes its own")
    try:
        module.check_data(path)
    except _common().WorkloadError as error:
        raise UsageError(error.message, error.hint) from error


def work_per_sample(name: str, values: Mapping[str, Any]) -> tuple[str, int]:
    """The unit of throughput and how many of it one sample (one row of a batch) holds: ("tokens", 256)."""
    info, module = get(name), load(name)
    factor = getattr(module, "per_sample", None)
    return info.unit, factor(make_settings(name, values)) if factor else 1


def setting_options(info: WorkloadInfo, values: Mapping[str, Any]) -> list[str]:
    """`--set name=value ...` for those of `values` that are not the defaults."""
    options = []
    for name, value in values.items():
        if value != info.setting(name).default:
            options += ["--set", f"{name}={_text(value)}"]
    return options


def workload_command(name: str, values: Mapping[str, Any], data: Path | None = None) -> list[str]:
    """argv that runs a workload, plain, as a user's own script would run.

    Without -E: the probe enters by PYTHONPATH.
    """
    argv = [sys.executable, "-P", str(entry_point()), "workload-run", name]
    argv += setting_options(get(name), values)
    return [*argv, f"--data={data}"] if data is not None else argv
