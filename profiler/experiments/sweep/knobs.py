"""What a search by itself may turn: the settings that a verdict asks for, and their values in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiler import catalog
from profiler.experiments.arm import read_arm
from profiler.experiments.change import WORKERS, current
from profiler.experiments.sweep.points import Axes
from profiler.experiments.sweep.subject import Point, Subject
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run

MOST_WORKERS, PER_CORE = 16, 4  # workers that wait for storage need no core
PREFETCH = (2, 4, 8)  # batches ahead of each worker
DOUBLINGS = 6  # of a batch, to either side
LOADING = ("input_bound", "transfer_bound")


@dataclass(frozen=True)
class Seen:
    """What a diagnosed recording tells of the program as it is. `wanted`: remedies, setting -> value."""

    verdict: str
    also: tuple[str, ...] = ()
    reason: str = ""
    on_device: bool = False
    cores: int = 1
    epochs: int = 0  # that began after the first
    loader: Mapping[str, Any] = field(default_factory=dict)
    wanted: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Seen:
        """Of a note in the journal. TypeError, KeyError or ValueError when it is none."""
        found = cls(**{**told, "also": tuple(told["also"])})
        if not (all(isinstance(word, str) for word in (found.verdict, found.reason, *found.also))
                and isinstance(found.loader, Mapping) and isinstance(found.wanted, Mapping)
                and isinstance(found.cores, int) and isinstance(found.epochs, int)):
            raise ValueError("a value of another kind")
        return found


@dataclass(frozen=True)
class Knob:
    """A key with its values in order, from less to more. `first`: the one to try before the others."""

    key: str
    values: tuple[Any, ...]
    first: Any = None


def look(path: Path, steps: int) -> Seen:
    """The diagnosis of a recording of `steps` steps. TargetError with the reason when the program failed."""
    read_arm(path, steps=steps)
    with Run.open(path) as run:
        found = diagnose(run)
    facts = found.facts
    return Seen(
        found.verdict, found.decision.also, found.decision.reason,
        facts.on_device, facts.cores,
        facts.summary.epochs.later if facts.summary else 0, dict(facts.loader),
        {f.remedy.setting: f.remedy.after for f in reversed(found.findings) if f.remedy})


def start(subject: Subject, seen: Seen, axes: Axes) -> dict[str, Any]:
    """The point that the program is at: its loader and batch settings, and the first of each given axis.

    What is not known of a loader without workers is torch's default.
    """
    point = {key: subject.typed({key: values[0]})[key] for key, values in axes.items()}
    known = {}
    for key in (_workers(subject), "prefetch_factor", "persistent_workers", "pin_memory"):
        value = current(key, subject.program, seen.loader)
        known[key] = PREFETCH[0] if key == "prefetch_factor" and value is None else value
    if subject.program.workload is None and not seen.loader:
        known = {}
    if "batch_size" in subject.program.settings:
        known["batch_size"] = subject.program.settings["batch_size"]
    return {**{key: value for key, value in known.items() if value is not None}, **point}


def knobs(subject: Subject, seen: Seen, point: Point, axes: Axes) -> list[Knob]:
    """In the order in which they are turned, the verdict's own first. Those not in `point` are left out.

    The loader's for input and transfer, the batch's otherwise; both where nothing is told.
    Of a given axis the values are those given.
    """
    words = (seen.verdict, *seen.also)
    loading = any(word in LOADING for word in words) or seen.verdict == "unknown"
    batch = any(word not in LOADING for word in words)
    workers = _workers(subject)
    found: list[Knob] = []
    if loading:
        found.append(Knob(workers, _up_to(min(MOST_WORKERS, PER_CORE * seen.cores), point.get(workers)),
                          seen.wanted.get(WORKERS, seen.wanted.get(workers))))
        found.append(Knob("prefetch_factor", _with(PREFETCH, point.get("prefetch_factor"))))
        if seen.epochs:
            found.append(Knob("persistent_workers", (False, True)))
        if seen.on_device:
            found.append(Knob("pin_memory", (False, True)))
    if batch:
        found.append(Knob("batch_size", _batches(subject, point.get("batch_size"))))
    given = [Knob(key, tuple(subject.typed({key: value})[key] for value in values))
             for key, values in axes.items()]
    return [knob for knob in found if knob.key in point and knob.key not in axes] + given


def _workers(subject: Subject) -> str:
    return "workers" if "workers" in subject.program.settings else WORKERS


def _with(values: Sequence[int], own: Any) -> tuple[int, ...]:
    return tuple(sorted({*values, own} if isinstance(own, int) else set(values)))


def _up_to(most: int, own: Any) -> tuple[int, ...]:
    """0, 1, 2, 4, ... and `most`, and the program's own."""
    return _with([0, *(2**k for k in range(10) if 2**k < most), most], own)


def _batches(subject: Subject, own: Any) -> tuple[int, ...]:
    """The program's own, doubled and halved, as far as the workload takes it."""
    if not isinstance(own, int) or subject.program.workload is None:
        return ()
    setting = catalog.get(subject.program.workload).setting("batch_size")
    low, high = setting.minimum or 1, setting.maximum or 1 << 30
    sizes = {own * 2**k for k in range(DOUBLINGS + 1)} | {own // 2**k for k in range(1, DOUBLINGS + 1)}
    return tuple(sorted(size for size in sizes if low <= size <= high and size >= 1))
