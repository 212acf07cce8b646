"""Values of settings: as typed, what cannot be, and the command line that carries them."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from profiler.catalog._machine import UNKNOWN, Machine, lacking, slow
from profiler.catalog._read import Setting, WorkloadInfo, close, fault, get, load
from profiler.errors import UsageError
from profiler.paths import entry_point

SIZE = "size"  # `--set size=smallest` applies a whole preset
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


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
                raise UsageError(f"{info.name} has no size {text}", close(text, list(info.sizes), "It has"))
            values |= info.sizes[text]
        else:
            given[name] = parse_value(info.setting(name), text.strip())
    values |= given
    for name, reason in check(info, values).items():
        raise UsageError(f"{name}={_text(values[name])} cannot be used: {reason}")
    return values


def parse_value(setting: Setting, text: str) -> Any:
    """The typed value of `text`. UsageError when it has none or is out of range."""
    value: Any = setting.aliases.get(text.lower(), text)
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
        if isinstance(value, float) and not math.isfinite(value):  # of a whole number it may not be asked
            return "it must be finite"
        if (low is not None and value < low) or (high is not None and value > high):
            return f"the range is {low} to {high}"
    return ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def check(info: WorkloadInfo, values: Mapping[str, Any], machine: Machine = UNKNOWN) -> dict[str, str]:
    """Settings that keep the workload from running, here on `machine`: name -> reason."""
    unfit = {s.name: reason for s in info.settings if (reason := _unfit(s, values.get(s.name, s.default)))}
    return unfit or {**load(info.name).check(_settled(info, values, machine)), **lacking(machine, values)}


def not_applicable(
    info: WorkloadInfo, values: Mapping[str, Any], machine: Machine = UNKNOWN
) -> dict[str, str]:
    """Settings that mean nothing beside the others in a run of one process: name -> reason.

    A form disables them.
    """
    settings = _settled(info, values, machine)
    lacks = {"ranks": "needs several processes, under torchrun"}
    if settings.device == "cpu":
        lacks["cuda"] = "needs a GPU"
    needs = {name: fault(name).needs for name in info.faults}
    off = {name: lacks[need] for name, need in needs.items() if need in lacks}
    of = getattr(load(info.name), "not_applicable", _shared("settings").not_applicable)
    return of(settings) | off


def advise(info: WorkloadInfo, values: Mapping[str, Any], machine: Machine = UNKNOWN) -> dict[str, str]:
    """Settings that work and may surprise: name -> sentence."""
    return dict(_shared("settings").advise(_settled(info, values, machine))) | slow(machine, values)


def _settled(info: WorkloadInfo, values: Mapping[str, Any], machine: Machine) -> Any:
    """The settings with the device that `auto` comes to."""
    device = machine.device(str(values.get("device", "auto")))
    return make_settings(info.name, {**values, "device": device})


def _shared(name: str) -> ModuleType:
    return importlib.import_module(f"workloads._{name}")


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
    except _shared("common").WorkloadError as error:
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
