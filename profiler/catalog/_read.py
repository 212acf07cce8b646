"""What workloads and faults are, from their files."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from profiler.errors import UsageError
from profiler.paths import HOME

FAULTS = "Faults"
GROUPS = ("Model and data", "Loader", "Compute", "Run", FAULTS)  # the order of settings in a form
TASKS = ("Start here", "Vision", "Language", "Speech", "Inference")  # the order of workloads


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
    aliases: Mapping[str, Any] = field(default_factory=dict)  # other spellings of a choice


@dataclass(frozen=True, slots=True)
class FaultInfo:
    """A fault to order. `factor` and `stage` are those of its run over the control's, at strength 1."""

    name: str
    title: str
    summary: str
    doc: str
    verdict: str  # the word that a diagnosis must come to, with the finding of `rule`
    on_cpu: str  # that of a run on the CPU
    rule: str
    stage: str
    remedy: tuple[str, Any] | None  # (setting, value)
    factor: tuple[float, float] | None  # None: it acts on a GPU only
    needs: str  # cpu, cuda or ranks
    workloads: tuple[str, ...]
    control: Mapping[str, Any]  # settings of the healthy run beside it
    faulty: Mapping[str, Any]  # settings beside the dial
    trace: bool  # its rule needs a trace window


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
    faults: tuple[str, ...]  # those that can act in it, each a setting too
    healthy: Mapping[str, Any]  # over size=smallest: two cores then have nothing to wait for; {}: unknown

    def setting(self, name: str) -> Setting:
        """UsageError when there is none of that name."""
        for setting in self.settings:
            if setting.name == name:
                return setting
        if name in _names("workloads/_faults"):
            where = ", ".join(fault(name).workloads)
            raise UsageError(f"{name} cannot act in {self.name}", f"It acts in {where}")
        names = [setting.name for setting in self.settings]
        raise UsageError(f"{self.name} has no setting {name}", close(name, names, "It has"))

    def defaults(self) -> dict[str, Any]:
        return {setting.name: setting.default for setting in self.settings}


@cache
def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in (HOME / folder).glob("*.py") if not p.stem.startswith("_")))


def load(name: str) -> ModuleType:
    """The workload's module. UsageError naming the known ones when there is none."""
    known = _names("workloads")
    if name not in known:
        raise UsageError(f"there is no workload {name}", close(name, known, "There are"))
    return importlib.import_module(f"workloads.{name}")


@cache
def get(name: str) -> WorkloadInfo:
    """One workload by name. UsageError naming the known ones when there is none."""
    module = load(name)
    summary, doc = _doc(module)
    fields = sorted(dataclasses.fields(module.Settings),
                    key=lambda f: (_position(f.metadata["group"], GROUPS), f.metadata["order"]))
    return WorkloadInfo(
        name=name, title=module.TITLE, group=module.GROUP, summary=summary, doc=doc, icon=module.ICON,
        settings=tuple(map(_setting, fields)), sizes=module.SIZES, unit=module.UNIT,
        tags=tuple(getattr(module, "TAGS", ())), data=getattr(module, "DATA", ""),
        faults=tuple(f.name for f in fields if f.metadata["group"] == FAULTS),
        healthy=dict(getattr(module, "HEALTHY", {})))


def named(name: str) -> WorkloadInfo | FaultInfo:
    """The workload or fault of this name. UsageError naming the close ones when there is none."""
    known = [*_names("workloads"), *_names("workloads/_faults")]
    if name not in known:
        raise UsageError(f"there is no workload or fault {name}", close(name, known, "There are"))
    return get(name) if name in _names("workloads") else fault(name)


def workloads() -> list[WorkloadInfo]:
    """Every workload, ordered by task and title."""
    return sorted(map(get, _names("workloads")),
                  key=lambda info: (_position(info.group, TASKS), info.group, info.title))


@cache
def fault(name: str) -> FaultInfo:
    """One fault by name. UsageError naming the known ones when there is none."""
    known = _names("workloads/_faults")
    if name not in known:
        raise UsageError(f"there is no fault {name}", close(name, known, "There are"))
    module = importlib.import_module(f"workloads._faults.{name}")
    summary, doc = _doc(module)
    return FaultInfo(
        name=name, title=module.TITLE, summary=summary, doc=doc, verdict=module.VERDICT,
        on_cpu=getattr(module, "ON_CPU", module.VERDICT), rule=module.RULE,
        stage=module.STAGE, remedy=module.REMEDY, factor=module.FACTOR, needs=module.NEEDS,
        workloads=tuple(module.WORKLOADS), control=dict(module.CONTROL), faulty=dict(module.FAULTY),
        trace=bool(getattr(module, "TRACE", False)))


def faults() -> list[FaultInfo]:
    """Every fault, by name."""
    return list(map(fault, _names("workloads/_faults")))


def _doc(module: ModuleType) -> tuple[str, str]:
    """The first line without its stop, and the whole docstring."""
    doc = (module.__doc__ or "").strip()
    return doc.partition("\n")[0].rstrip("."), doc


def _position(value: str, order: Sequence[str]) -> int:
    return order.index(value) if value in order else len(order)


def _setting(own: dataclasses.Field[Any]) -> Setting:
    meta = own.metadata
    kind = own.type if isinstance(own.type, str) else getattr(own.type, "__name__", "str")
    return Setting(
        name=own.name, type="choice" if meta["choices"] else kind, default=own.default, help=meta["help"],
        unit=meta["unit"], group=meta["group"], minimum=meta["minimum"], maximum=meta["maximum"],
        choices=tuple(meta["choices"]), label=meta["label"], aliases=dict(meta.get("aliases", {})))


def close(word: str, known: Sequence[str], otherwise: str) -> str:
    """A hint: the names most like `word`, else all of them after `otherwise`."""
    near = difflib.get_close_matches(word, known, n=2)
    return f"Did you mean {' or '.join(near)}?" if near else f"{otherwise} {', '.join(known)}"
