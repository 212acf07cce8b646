"""Runs a sweep or a search by itself: told on stderr while it works, kept in its folder."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profiler.cli._common import Progress, duration, plain
from profiler.cli._experiment import recordings
from profiler.cli._signals import terminated_as_interrupt
from profiler.cli._streams import tell
from profiler.cli._sweep import change_line
from profiler.experiments import lines
from profiler.experiments.statistics import ENOUGH
from profiler.experiments.sweep import journal
from profiler.experiments.sweep.auto import Change, Search
from profiler.experiments.sweep.knobs import Seen, look
from profiler.experiments.sweep.measure import Measured, Recorder
from profiler.experiments.sweep.points import Axes, label
from profiler.experiments.sweep.result import Sweep
from profiler.experiments.sweep.run import Bench, Listener, expected_s, run_points
from profiler.experiments.sweep.subject import Point, Subject
from profiler.rules.base import plural
from profiler.units import format_rate

RESULT = "sweep.json"
Skipped = list[tuple[Point, str]]
Explore = Callable[[Bench, list[Point], Skipped], None]


@dataclass(frozen=True)
class Work:
    """What is to be done. `folder` holds the journal and the result, with `keep` the run files too."""

    subject: Subject
    folder: Path
    steps: int
    repeats: int
    seed: int = 0
    most_memory: float | None = None
    limit_s: float | None = None
    resume: bool = False
    keep: bool = False

    @contextmanager
    def bench(self, title: str) -> Iterator[tuple[Bench, Progress]]:
        """Where its points are measured, with a bar on a terminal."""
        program = self.subject.program
        kept = journal.begin(self.folder, {
            "workload": program.workload, "settings": dict(program.settings),
            "command": list(program.command), "data": str(program.data) if program.data else None,
            "working directory": str(program.cwd), "number of steps": self.steps,
            "machine": platform.node()}, self.resume)
        of_epochs = "persistent_workers" in self.subject.keys
        with lines.alone(self.folder), terminated_as_interrupt(), \
                recordings("sweep", self.folder if self.keep else None) as place, Progress(title, 1.0) as bar:
            yield Bench(Recorder(self.subject, self.steps, of_epochs), kept, place, self.repeats, self.seed,
                        self.most_memory, self.limit_s, self.keep, _listener(bar)), bar

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        """Keep the result beside its runs; say how to go on with one that was interrupted."""
        told = {**plain(told), "folder": str(self.folder)}
        path = self.folder / RESULT
        try:
            lines.replace(path, told)
        except OSError as error:
            tell(f"stepscope: {path} cannot be written: {error.strerror}")
        if told["interrupted"]:
            tell(f"Interrupted. The same command goes on with --resume -o {shlex.quote(str(self.folder))}")
        return told


def measure_all(work: Work, points: list[Point], skipped: Skipped,
                explore: Explore | None = None) -> dict[str, Any]:
    """Every point in rounds, to the JSON form of a sweep. `explore` finds the points by measuring."""
    begin = time.monotonic()
    given_up: dict[str, str] = {}
    interrupted = False
    with work.bench("Sweep") as (bench, _):
        tell(_budget(bench, points, skipped, work.folder) if points else
             f"Each point is drawn from what was measured before; kept in {work.folder}")
        try:
            if explore is not None:
                explore(bench, points, skipped)
            given_up = run_points(bench, points)
        except KeyboardInterrupt:
            interrupted = True
    runs = {name: own for (group, name), own in bench.journal.runs.items() if not group}
    notes = _notes(bench, work.subject)
    if explore is not None:
        notes += ("The first runs of the points came one after the other, as the sampler chose: what the "
                  "machine did meanwhile is in them",)
    return work.finish(Sweep(
        work.subject, runs, tuple(points), tuple(skipped), given_up, work.most_memory, work.steps,
        work.repeats, time.monotonic() - begin, interrupted, notes).to_json())


def search_itself(work: Work, axes: Axes) -> dict[str, Any]:
    """Coordinate descent from the diagnosis, to its JSON form."""
    begin = time.monotonic()
    with work.bench("Search") as (bench, bar):
        bench = replace(bench, repeats=max(bench.repeats, ENOUGH), listener=_quiet(bench.listener))
        tell(f"The program is recorded and diagnosed, then one setting is changed at a time, each change in "
             f"at most {bench.repeats} pairs of runs; kept in {work.folder}")

        def say(change: Change) -> None:
            bar.clear()
            tell(change_line(plain(change.to_json())))

        def seen(point: Point, name: str) -> Seen:
            found = _seen(work, bench, {**_first(work.subject, axes), **point}, name, bar)
            bar.clear()
            tell(f"{name}: {found.verdict}: {found.reason}")
            return found

        search = Search(work.subject, bench, replace(bench, take=Recorder(work.subject, work.steps, True)),
                        seen, axes, say)
        search.run()
    return work.finish({**search.to_json(), "steps": work.steps, "repeats": bench.repeats,
                        "wall_s": time.monotonic() - begin})


def _first(subject: Subject, axes: Axes) -> Point:
    return {key: subject.typed({key: values[0]})[key] for key, values in axes.items()}


def _seen(work: Work, bench: Bench, point: Point, name: str, bar: Progress) -> Seen:
    """The diagnosis of a recording at a point; one that is in the journal is not made again."""
    if isinstance(known := bench.journal.notes.get(name), dict):
        with suppress(TypeError, KeyError, ValueError):  # what is damaged is seen again
            return Seen.from_json(known)
    output = bench.folder / f"{name.replace(' ', '-')}.stepscope"
    output.unlink(missing_ok=True)  # of a search that was interrupted in it
    begin = time.monotonic()
    work.subject.at(point).record(
        output, limit_s=bench.limit(), steps=work.steps, name=name,
        intervene=work.subject.intervene(point) or None, tick=lambda seconds: bar.update(0.0, name))
    found = look(output, work.steps)
    bench.journal.note(name, plain(found))
    if not bench.journal.every():
        usual = time.monotonic() - begin
        tell(f"A run takes about {duration(usual)}, a change up to {duration(2 * bench.repeats * usual)}")
    return found


def _budget(bench: Bench, chosen: list[Point], skipped: Skipped, folder: Path) -> str:
    runs = [len(bench.journal.of("", point)) for point in chosen]
    left = sum(max(0, bench.repeats - done) for done in runs)
    usual = expected_s(bench.journal, "", chosen[0])
    time_s = f", about {duration(left * usual)}" if usual else "; the first tells how long they take"
    return (f"At most {plural(left, 'run')} of {plural(len(chosen), 'point')}{time_s}"
            + (f"; done already: {sum(runs)}" if sum(runs) else "")
            + (f"; {plural(len(skipped), 'combination')} left out" if skipped else "")
            + f"; kept in {folder}")


def _listener(bar: Progress) -> Listener:
    def tick(done: float, most: int, left: float | None, text: str) -> None:
        bar.update(done / most if most else 0.0, text + (f", about {duration(left)} left" if left else ""))

    def finished(point: Point, number: int, measured: Measured, left: float | None) -> None:
        bar.clear()
        tell(f"{label(point)}, run {number}: {run_text(measured)}")
        if left:
            tell(f"The other runs take at most about {duration(left)}")

    def dropped(point: Point, why: str) -> None:
        bar.clear()
        tell(f"{label(point)} is not run again: {why}")

    return Listener(tick, finished, dropped)


def _quiet(listener: Listener) -> Listener:
    """Tells of runs that do not count only: a search tells each change when it is decided."""
    def finished(point: Point, number: int, measured: Measured, left: float | None) -> None:
        if not measured.counts:
            listener.finished(point, number, measured, None)

    return Listener(listener.tick, finished)


def run_text(measured: Measured) -> str:
    """61.2 samples/s, or why it does not count."""
    if measured.failure:
        return measured.trouble
    rate = format_rate(measured.rate, f"{measured.unit}/s") or f"{measured.step_ms:.1f} ms per step"
    return rate + (f", left out: {measured.trouble}" if measured.marks else "")


def _notes(bench: Bench, subject: Subject) -> tuple[str, ...]:
    notes = []
    if bench.journal.damaged:
        notes.append(f"{bench.journal.damaged} lines of the journal are damaged and left out")
    if variables := [key for key in subject.keys if subject.way(key) == "environment"]:
        notes.append(f"Set as variables of the environment: {', '.join(variables)}")
    if "persistent_workers" in subject.keys:
        notes.append("Rates are over all steps after the first, epoch starts included")
        if not any(run.epochs for run in bench.journal.every()):
            notes.append("No epoch began within the steps of a run, so that persistent_workers could show "
                         "nothing: give more --steps")
    return tuple(notes)
