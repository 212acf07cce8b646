"""What recordings of stages alone say beside those of the program as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from profiler.experiments.arm import Arm
from profiler.experiments.ceilings.leaning import DEVICE, FORWARD, LOADER, REAL, Leaning, Level, lean
from profiler.experiments.ceilings.plan import ADVISED, TITLES, Kind, Plan


@dataclass(frozen=True)
class Taken:
    """One recording of a stage: what it measured, or how it failed."""

    stage: str
    round: int
    arm: Arm | None = None
    failure: str = ""
    wall_s: float = 0.0

    @property
    def why(self) -> tuple[str, ...]:
        """Why it does not count; empty when it does."""
        return (self.failure,) if self.arm is None else self.arm.marks


@dataclass
class Result:
    """What was measured; with `interrupted` what there was by then. `absent`: stages left out, and why."""

    plan: Plan
    kind: Kind | None = None
    taken: list[Taken] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    wall_s: float = 0.0
    interrupted: bool = False

    def usual_s(self) -> float | None:
        """How long a recording takes, as far as that is known."""
        return self.plan.expected_s() or (self.taken[0].wall_s if self.taken else None)

    def counted(self, stage: str) -> list[Arm]:
        return [t.arm for t in self.taken if t.stage == stage and t.arm is not None and not t.why]

    def levels(self) -> dict[str, Level]:
        """Step times of the stages for the run's own mean batch: those of other sizes are scaled to it."""
        batch = _median([arm.batch for arm in self.counted(REAL)])
        found = {}
        for stage in TITLES:
            values = [arm.step_ms * (batch / arm.batch if batch and arm.batch else 1.0)
                      for arm in self.counted(stage)]
            if values:
                found[stage] = Level(float(np.median(values)), min(values), max(values))
        return found

    def leaning(self) -> Leaning:
        real = self.counted(REAL)
        return lean(self.levels(), self.kind.workers if self.kind else None,
                    _median([arm.batch for arm in real]), real[0].work if real else "samples")

    def to_json(self) -> dict[str, Any]:
        """The form that is stored and printed. Times in ms per step, rates in `unit` per second."""
        leaning, real = self.leaning(), self.counted(REAL)
        levels = self.levels()
        loader_ms = {arm.loader["num_workers"]: levels[stage].median for stage in (LOADER, ADVISED)
                     for arm in self.counted(stage) if "num_workers" in arm.loader}
        return {
            "schema": 1, "kind": "ceilings", "unit": real[0].work if real else "samples",
            "workers": self.kind.workers if self.kind else None,
            "on_device": self.kind.on_device if self.kind else None,
            "stages": [self._stage(name, levels[name]) for name in TITLES if name in levels],
            "loader_ms": {str(workers): ms for workers, ms in loader_ms.items()},
            "leaning": {"on": leaning.on, "also": list(leaning.also), "how": leaning.how,
                        "text": leaning.text},
            "absent": [{"stage": name, "title": TITLES[name], "why": why}
                       for name, why in self.absent.items()],
            "left_out": [{"stage": t.stage, "title": TITLES[t.stage], "round": t.round, "why": list(t.why)}
                         for t in self.taken if t.why],
            "steps": self.plan.steps, "repeats": self.plan.repeats, "wall_s": self.wall_s,
            "interrupted": self.interrupted, "notes": self._notes(levels),
        }

    def _stage(self, name: str, level: Level) -> dict[str, Any]:
        arms = self.counted(name)
        rates = [arm.throughput for arm in arms if arm.throughput is not None]
        return {"name": name, "title": TITLES[name], "runs": len(arms),
                "step_ms": {"median": level.median, "low": level.low, "high": level.high},
                "throughput": {"median": float(np.median(rates)), "low": min(rates), "high": max(rates)}
                if len(rates) == len(arms) else None,
                "stages_ms": {stage: float(np.mean([arm.stages_ms[stage] for arm in arms]))
                              for stage in arms[0].stages_ms},
                "loader": dict(arms[0].loader)}

    def _notes(self, levels: Mapping[str, Level]) -> list[str]:
        notes = []
        if self.interrupted:
            notes.append("Interrupted: this is what was measured by then")
        if FORWARD in levels and self.kind:
            notes.append(f"Forward alone is with one batch kept{' on the device' * self.kind.on_device}")
        left = sum(arm.stages_ms.get("h2d", 0.0) for arm in self.counted(DEVICE))
        if DEVICE in levels and left > 0.05 * levels[DEVICE].median * len(self.counted(DEVICE)):
            notes.append("Some copies of the batch were made although it was kept on the device")
        return notes


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
