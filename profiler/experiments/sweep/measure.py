"""One recording of a sweep: started, read, and told as a line of the journal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from profiler.analysis.costs import energy_per_sample, peak_memory
from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.errors import TargetError
from profiler.experiments.arm import LATE, OUT_OF_MEMORY, read_arm
from profiler.experiments.change import LOADER
from profiler.experiments.sweep.subject import OF_WORKERS, Point, Subject
from profiler.model import STAGES, mapping
from profiler.run.reader import Run

MEMORY, CRASHED, STUCK, REFUSED, SILENT = (
    "out of memory", "crashed", "did not end", "had no effect", "nothing measured")
# A second try of these would end the same; a crash may have been bad luck.
FOR_GOOD = (MEMORY, STUCK, REFUSED)
Tick = Callable[[float], None]


@dataclass(frozen=True)
class Measured:
    """One recording. It counts when there is neither a failure nor a mark.

    `rate`: samples (or tokens: `unit`) per second over the steady steps, None where the
    work of a step is not known. `memory`: bytes at the peak, of what `memory_of` says.
    `energy`: J per sample. `failure`: one of the words above, with `why`.
    """

    step_ms: float | None = None
    rate: float | None = None
    unit: str = "samples"
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    memory: float | None = None
    memory_of: str = ""
    energy: float | None = None
    epochs: int = 0  # that began after the first one
    marks: tuple[str, ...] = ()
    failure: str = ""
    why: str = ""
    wall_s: float = 0.0

    @property
    def counts(self) -> bool:
        return not self.failure and not self.marks and self.step_ms is not None

    @property
    def trouble(self) -> str:
        """Why it does not count; "" when it does."""
        return f"{self.failure}: {self.why}" if self.failure else ", ".join(self.marks)

    def to_json(self) -> dict[str, Any]:
        return {f.name: list(value) if isinstance(value := getattr(self, f.name), tuple) else value
                for f in fields(self)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Measured:
        """Of a line of the journal. KeyError, TypeError or ValueError when it is none."""
        values = {f.name: told[f.name] for f in fields(cls)}
        values["marks"], values["stages_ms"] = tuple(values["marks"]), dict(values["stages_ms"])
        known = [values[name] for name in ("step_ms", "rate", "memory", "energy") if values[name] is not None]
        numbers = [*known, values["wall_s"], values["epochs"], *values["stages_ms"].values()]
        texts = [*values["marks"], *(values[name] for name in ("unit", "memory_of", "failure", "why"))]
        if not all(map(_number, numbers)) or not all(isinstance(text, str) for text in texts):
            raise TypeError("a value of another kind")
        if values["step_ms"] is not None and values["stages_ms"].keys() != set(STAGES):
            raise ValueError("other stages")
        return cls(**values)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


@dataclass(frozen=True)
class Recorder:
    """Starts one recording of a point and reads it. Tests put another callable in its place.

    `of_epochs`: rates are over all steps after the first, epoch starts included.
    """

    subject: Subject
    steps: int
    of_epochs: bool = False

    def __call__(self, point: Point, output: Path, limit_s: float, tick: Tick) -> Measured:
        """A failure of the program is told in what is returned, none is raised."""
        begin = time.monotonic()
        try:
            wanted = self.subject.intervene(point)
            self.subject.at(point).record(
                output, limit_s=limit_s, steps=self.steps, name=f"sweep {output.stem}",
                intervene=wanted or None, tick=tick)
            found = read(output, wanted, self.steps, self.of_epochs)
        except TargetError as error:
            found = Measured(failure=CRASHED, why=error.message)
        return Measured(**{**vars(found), "wall_s": time.monotonic() - begin})


def read(path: Path, wanted: Mapping[str, Any], steps: int, of_epochs: bool = False) -> Measured:
    """What a recording of `steps` steps gives. `wanted`: loader settings that it must have had."""
    try:
        arm = read_arm(path, of_epochs, steps)
    except TargetError as error:
        return Measured(failure=_word(path), why=error.message)
    if LATE in arm.marks:
        return Measured(failure=STUCK, why="it was not done when its time was up")
    if refused := _refused(wanted, arm.loader):
        return Measured(failure=REFUSED, why=refused)
    with Run.open(path) as run:
        facts = gather(run, training_process(run))
        costs, energy = peak_memory(run), energy_per_sample(run, facts)
    rate = arm.throughput
    if of_epochs:
        rate = arm.batch / arm.step_ms * 1e3 if arm.batch else None
    return Measured(
        step_ms=arm.step_ms, rate=rate, unit=facts.steps.unit, stages_ms=arm.stages_ms,
        memory=costs[0] if costs else None, memory_of=costs[1] if costs else "", energy=energy,
        epochs=facts.summary.epochs.later if facts.summary else 0, marks=arm.marks)


def _word(path: Path) -> str:
    """What kind of failure a recording shows that gave nothing."""
    with Run.open(path) as run:
        ended = mapping(run.meta.get("exit"))
        output = b"".join(data for _, _, data in run.output())
    if ended.get("reason") == "duration":
        return STUCK
    if ended.get("reason") != "ended" or not (ended.get("code") or ended.get("signal")):
        return SILENT
    return MEMORY if ended.get("signal") == "SIGKILL" or OUT_OF_MEMORY.search(output) else CRASHED


def _refused(wanted: Mapping[str, Any], loader: Mapping[str, Any]) -> str:
    """Why loader settings were without effect; "" when the loader had them."""
    asked = {name: value for name, value in wanted.items() if name in LOADER}
    if asked and not loader:
        return "no DataLoader was seen in the program"
    for name, value in asked.items():
        if name in OF_WORKERS and not loader.get("num_workers"):
            continue
        if loader.get(name) != value:
            return f"the loader did not take {name}={value}, it had {loader.get(name)}"
    return ""
