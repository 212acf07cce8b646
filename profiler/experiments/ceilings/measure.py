"""The recordings: the program as it is and its stages alone, in rounds that go forth and back.

So drift of the machine hits all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from profiler.analysis.facts import gather
from profiler.errors import TargetError
from profiler.experiments.arm import LATE, read_arm, unapplied
from profiler.experiments.ceilings.leaning import REAL
from profiler.experiments.ceilings.plan import Kind, Plan, Stage, kind_of, stages
from profiler.experiments.ceilings.result import Result, Taken
from profiler.rules.verdict import training_processes
from profiler.run.reader import Run

LIMIT_S = 600.0  # of a first recording, of which nothing is known
TRIES = 2  # failures of a stage until it is given up


@dataclass
class Listener:
    """Who is told: `tick(recordings done, of so many, seconds left or None, text)`, `taken(what)`."""

    tick: Callable[[float, int, float | None, str], None] = lambda done, total, left, text: None
    taken: Callable[[Taken], None] = lambda taken: None


def measure(plan: Plan, folder: Path, listener: Listener) -> Result:
    """Record all stages `plan.repeats` times into run files in `folder`.

    KeyboardInterrupt ends it, and what was measured is the result. TargetError when the
    program as it is cannot be measured at first: then there is nothing to compare with.
    """
    begin, result = time.monotonic(), Result(plan, plan.kind)
    try:
        first = _record(result, Stage(REAL, {}), 1, folder, listener)
        if first.arm is None:
            hint = "Give fewer --steps" if first.failure == LATE else ""
            raise TargetError(f"the program as it is cannot be measured: {first.failure}", hint)
        result.kind = _look(folder / _name(REAL, 1))
        chosen, result.absent = stages(plan, result.kind)
        for number in range(1, plan.repeats + 1):
            order = chosen if number % 2 else chosen[::-1]
            for stage in order[1:] if number == 1 else order:
                if not _hopeless(result, stage.name):
                    _record(result, stage, number, folder, listener)
    except KeyboardInterrupt:
        result.interrupted = True
    result.wall_s = time.monotonic() - begin
    return result


def _hopeless(result: Result, stage: str) -> bool:
    failures = [t for t in result.taken if t.stage == stage and t.failure]
    if len(failures) >= TRIES and not result.counted(stage):
        result.absent.setdefault(stage, failures[-1].failure)
    return stage in result.absent


def _name(stage: str, number: int) -> str:
    return f"{number}-{stage}.stepscope"


def _record(result: Result, stage: Stage, number: int, folder: Path, listener: Listener) -> Taken:
    plan, path, begin = result.plan, folder / _name(stage.name, number), time.monotonic()
    done, total = len(result.taken), plan.recordings(result.kind)
    text = f"round {number} of {plan.repeats}, {stage.title}"
    usual = result.usual_s()

    def tick(seconds: float) -> None:
        now = done + min(seconds / usual, 1.0) if usual else float(done)
        listener.tick(now, total, usual * (total - now) if usual else None, text)

    arm, failure = None, ""
    try:
        plan.program.record(
            path, limit_s=max(60.0, 10 * usual) if usual else LIMIT_S, steps=plan.steps,
            name=f"ceilings {stage.name}", intervene=dict(stage.intervene) or None, tick=tick)
        arm = read_arm(path, steps=plan.steps)
        if LATE in arm.marks:
            arm, failure = None, LATE
        elif why := unapplied(path, stage.intervene):
            arm, failure = None, why
            result.absent[stage.name] = why  # it would be so again
    except TargetError as error:
        failure = error.message
    result.taken.append(Taken(stage.name, number, arm, failure, time.monotonic() - begin))
    listener.taken(result.taken[-1])
    return result.taken[-1]


def _look(path: Path) -> Kind:
    with Run.open(path) as run:
        every = [gather(run, process) for process in training_processes(run)]
    return kind_of(max(every, key=lambda facts: facts.summary.step_ns if facts.summary else 0.0))
