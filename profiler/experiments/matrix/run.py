"""A whole matrix: which runs, how long they will take, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from profiler.experiments.matrix import store
from profiler.experiments.matrix.cases import Case
from profiler.experiments.matrix.play import play
from profiler.experiments.matrix.table import parts
from profiler.record.metadata import machine
from profiler.version import version

RUN_S, TRACE_S = 10.0, 1.0  # of a run and of a labelled trace on two cores, until one was measured


@dataclass(frozen=True)
class Job:
    """One run of a case. `repeat` counts from 1."""

    case: Case
    repeat: int

    @property
    def key(self) -> str:
        return store.key(self.case.to_json(), self.repeat)


@dataclass
class Listener:
    """Who is told while it runs: `tick(done in s, of so many, text)`, `run(what came of one)`."""

    tick: Callable[[float, float, str], None] = lambda done, total, text: None
    run: Callable[[Mapping[str, Any]], None] = lambda line: None


@dataclass(frozen=True)
class Result:
    """What was found. With `interrupted` it is what there was by then. `left_out`: name -> reason."""

    lines: Sequence[Mapping[str, Any]]
    repeats: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """The form that is printed and kept: what was found, where, when, with what. Shares in [0, 1]."""
        runs, traces = parts(self.lines)
        versions = {"stepscope": version()}
        for line in self.lines:
            versions |= line["versions"]
        here = machine()
        del here["hostname"]  # the file may be published
        return {
            "schema": 1, "kind": "matrix", "date": datetime.now(UTC).date().isoformat(), "machine": here,
            "versions": versions, "code": store.code(), "repeats": self.repeats,
            "interrupted": self.interrupted, "runs": runs, "traces": traces,
            "left_out": [{"fault": name, "why": why} for name, why in self.left_out.items()],
            "recorded_s": round(sum(line["seconds"] for line in self.lines), 1),
        }


def jobs(cases: Sequence[Case], repeats: int, traces: Sequence[Case] = ()) -> list[Job]:
    """Round by round, so that what disturbs the machine for a while falls on all cases alike.

    A trace is diagnosed once: the same file gives the same answer.
    """
    rounds = [Job(case, repeat) for repeat in range(1, repeats + 1) for case in cases]
    return rounds + [Job(trace, 1) for trace in traces]


def expected_s(work: Sequence[Job], done: Sequence[Mapping[str, Any]] = ()) -> float:
    """How long so many runs will take: each as its case took before, else as all others did."""
    took: dict[str, list[float]] = {}
    for line in done:
        took.setdefault(line["case"]["name"], []).append(line["seconds"])
    recorded = [line["seconds"] for line in done if line["case"]["settings"] or line["case"]["command"]]
    usual = fmean(recorded) if recorded else RUN_S

    def one(case: Case) -> float:
        return fmean(took[case.name]) if case.name in took else TRACE_S if case.trace else usual

    return sum(one(job.case) for job in work)


def run(work: Sequence[Job], folder: Path, repeats: int, *, left_out: Mapping[str, str] | None = None,
        keep: bool = False, listener: Listener | None = None) -> Result:
    """Do what is not done yet, in `folder`; what is done is taken from there.

    Ends by KeyboardInterrupt too: then what was finished is the result.
    """
    told = listener or Listener()
    known = store.finished(folder)
    missing = [job for job in work if job.key not in known]
    done: list[Mapping[str, Any]] = [known[job.key] for job in work if job.key in known]
    interrupted = False
    try:
        while missing:
            line = _next(missing, folder, keep, done, told)
            store.add(folder, line)
            done.append(line)
            missing.pop(0)
            told.run(line)
    except KeyboardInterrupt:
        interrupted = True
    return Result(done, repeats, left_out or {}, interrupted)


def _next(missing: Sequence[Job], folder: Path, keep: bool, done: Sequence[Mapping[str, Any]],
          told: Listener) -> dict[str, Any]:
    """Play the first of what is missing."""
    case, repeat = missing[0].case, missing[0].repeat
    before, left = sum(line["seconds"] for line in done), expected_s(missing, done)
    own = expected_s(missing[:1], done)
    text = f"{len(missing)} to go, {case.kind} {case.name}"

    def tick(seconds: float) -> None:
        told.tick(before + min(seconds, own), before + left, text)

    tick(0.0)
    return play(case, repeat, folder, keep=keep, tick=tick)
