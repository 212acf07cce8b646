"""Recordings that are not made: a function of the point tells what each run measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiler.experiments.program import Program
from profiler.experiments.sweep.journal import Journal
from profiler.experiments.sweep.measure import Measured
from profiler.experiments.sweep.run import Bench, Listener
from profiler.experiments.sweep.subject import Point, Subject
from profiler.model import STAGES

GOOD = Measured(step_ms=10.0, rate=100.0, stages_ms=dict.fromkeys(STAGES, 1.0), memory=1e9,
                memory_of="made up", wall_s=2.0)
SUBJECT = Subject(Program(Path(), command=("python", "train.py", "{a}", "{b}")), ("a", "b"))
Answer = Measured | float | BaseException


class Taker:
    """Stands in for a Recorder: `answer(point, number of its run)` is a rate, or all that was measured."""

    def __init__(self, answer: Callable[[Mapping[str, Any], int], Answer]) -> None:
        self.answer = answer
        self.order: list[dict[str, Any]] = []

    def __call__(self, point: Point, output: Path, limit_s: float, tick: Callable[[float], None]) -> Measured:
        told = self.answer(point, sum(past == dict(point) for past in self.order))
        if isinstance(told, BaseException):
            raise told
        self.order.append(dict(point))
        tick(1.0)
        output.write_bytes(b"a recording")
        return told if isinstance(told, Measured) else replace(GOOD, rate=told, step_ms=1e3 / told)


def bench(folder: Path, taker: Taker, repeats: int = 3, journal: Journal | None = None, **more: Any) -> Bench:
    more = {"listener": Listener(), **more}
    return Bench(taker, journal or Journal(), folder, repeats, **more)
