"""What a run tells without a trace: its steps with their stages as lanes, and its counters. On the worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.live.series import Intervals, to_curve
from app.timeline import spans
from app.timeline.region import Region, of_steps
from app.timeline.spans import CODE, Builder, Codes, Ints, Model
from profiler.analysis.steps import Steps, load_steps, step_processes, training_process
from profiler.metrics import stage_title
from profiler.model import STAGES, Device, Track
from profiler.run.reader import Run

GIB = 2.0**30
# Of each device: key, title, note, (metric, name, colour, factor) of each line, and the top of the axis.
_GPU = (
    (
        "util",
        "Utilization",
        "%",
        (("gpu.util", "utilization", "m2", 100.0), ("gpu.sm_active", "SM activity", "m1", 100.0)),
        100.0,
    ),
    ("memory", "Memory used", "GiB", (("gpu.mem_used", "used", "m1", 1 / GIB),), None),
    ("power", "Power", "W", (("gpu.power", "power", "m1", 1.0),), None),
)
_HOST = (
    ("cpu", "CPU", "% of all cores", (("host.cpu", "busy", "m1", 100.0),), 100.0),
    ("workers", "Loader workers", "busy cores", (("target.workers_cpu", "busy", "m1", 1.0),), None),
)


@dataclass(frozen=True, eq=False)
class Line:
    """`x`: ns since the run's start; NaN in `y` where nothing is known from there on. `few`: show samples."""

    name: str
    colour: str
    x: Ints
    y: NDArray[np.float64]
    few: bool = False


@dataclass(frozen=True, eq=False)
class CounterRow:
    """A chart of a lane's height. `top`: of the axis, None: of the values in view."""

    key: str
    title: str
    note: str
    lines: tuple[Line, ...]
    top: float | None = None


@dataclass(frozen=True, eq=False)
class Counters:
    rows: tuple[CounterRow, ...] = ()
    t0: int = 0  # what was asked for, ns
    t1: int = 0


def model(run: Run) -> Model:
    """Lanes of the steps that the probe measured, of every process that sent some."""
    builder = Builder()
    if run.meta.get("kind") != "import":  # an import's steps are in its trace
        processes = {process.id: process for process in run.processes}
        found = step_processes(run)
        for process in found:
            steps = load_steps(run, process)
            if len(steps):
                rank = processes[process].rank if process in processes else None
                add_steps(builder, steps, run.start_ns, f", rank {rank}" if len(found) > 1 else "")
    return builder.model((0, max(1, run.end_ns - run.start_ns)))


def add_steps(builder: Builder, steps: Steps, start_ns: int, suffix: str = "") -> None:
    """Steps, and their stages one after the other: only their lengths are measured."""
    n = len(steps)
    names = np.array([builder.code(f"#{k}") for k in steps.index.tolist()], np.int32)
    t0, t1 = _apart(steps.t0_ns - start_ns, steps.t1_ns - start_ns)
    own = f"{steps.process}"
    builder.add(
        f"steps/p{own}",
        f"Steps{suffix}",
        "measured by the probe",
        "steps",
        {"start": t0, "end": t1, "colour": np.full(n, CODE["other"]), "name": names, "ref": np.arange(n)},
        np.zeros(n, np.int64),
    )
    lengths = np.stack([steps.stages[stage] for stage in STAGES])
    ends = np.minimum(np.cumsum(lengths, axis=0) + t0, t1)
    starts = np.vstack([t0, ends[:-1]])
    order = np.arange(n * len(STAGES)).reshape(n, len(STAGES))
    start, end = starts.T.ravel(), ends.T.ravel()
    codes = np.array([builder.code(stage_title(stage)) for stage in STAGES], np.int32)
    there = end > start
    columns = {
        "start": start,
        "end": end,
        "colour": np.tile([CODE[stage] for stage in STAGES], n),
        "name": np.tile(codes, n),
        "ref": order.ravel() // len(STAGES),
    }
    builder.add(
        f"stages/p{own}",
        f"Stages{suffix}",
        "host, lengths in order",
        "stages",
        {name: column[there] for name, column in columns.items()},
        np.zeros(int(there.sum()), np.int64),
    )


def _apart(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Steps that touch by rounding are drawn one after the other."""
    start = np.maximum(start, np.concatenate(([start[0]], end[:-1])))
    return start, np.maximum(end, start + 1)


def joined(first: Model, second: Model) -> Model:
    """The lanes of both; numbers of spans and rows of the first stay what they are."""
    rows, texts = len(first.edges) - 1, len(first.names)
    names = np.where(second.name >= 0, second.name + texts, -1).astype(np.int32)
    columns = {
        name: np.concatenate((getattr(first, name), getattr(second, name)))
        for name in ("start", "end", "colour", "ref")
    }
    gaps = {
        name: np.concatenate((first.gaps[name], second.gaps[name] + shift))
        for name, shift in (("row", rows), ("start", 0), ("end", 0), ("name", texts))
    }
    lanes = first.lanes
    if any(lane.kind == "steps" for lane in second.lanes):  # two lanes of steps: say which is whose
        lanes = tuple(replace(lane, title=f"{lane.title}, trace") if lane.kind == "steps" else lane
                      for lane in lanes)
    return Model(
        (*lanes, *(replace(lane, first=lane.first + rows) for lane in second.lanes)),
        (*first.names, *second.names),
        np.concatenate((first.edges, second.edges[1:] + len(first))),
        name=_codes(first.name, names),
        gaps=gaps,
        counters=(*first.counters, *second.counters),
        points=(*first.points, *second.points),
        notes=(*first.notes, *second.notes),
        range_ns=second.range_ns,
        traced=first.traced,
        **columns,
    )


def _codes(one: Codes, two: Codes) -> Codes:
    return np.concatenate((one, two))


def whole(run: Run, traced: Path | None) -> Model:
    """Everything there is of a run: the lanes of its traces in the file `traced`, and those of its steps."""
    own = model(run)
    return (own if traced is None else joined(spans.load(traced), own)).prepare()


def counters(run: Run, t0: int, t1: int, points: int) -> Counters:
    """What was sampled between two times of the run, ns, in about `points` entries a line."""
    start, rows = run.start_ns, []
    for device in run.devices:
        where = f", GPU {device.index}" if len(run.devices) > 1 else ""
        for key, title, note, lines, top in _GPU:
            found = _lines(run, start, t0, t1, points, lines, device)
            rows.append(CounterRow(f"{key}/d{device.id}", f"{title}{where}", note, found, top))
    for key, title, note, lines, top in _HOST:
        rows.append(CounterRow(key, title, note, _lines(run, start, t0, t1, points, lines, None), top))
    return Counters(tuple(row for row in rows if row.lines), t0, t1)


def _lines(
    run: Run,
    start: int,
    t0: int,
    t1: int,
    points: int,
    wanted: Sequence[tuple[str, str, str, float]],
    device: Device | None,
) -> tuple[Line, ...]:
    found = []
    for metric, name, colour, factor in wanted:
        tracks = run.find(metric, device=device.id if device is not None else None)
        if tracks:
            if metric == "target.workers_cpu" and not _ever(run, tracks[0]):
                continue
            line = _line(run, tracks[0], start, t0, t1, points, factor)
            found.append(Line(name, colour, *line))
    return tuple(found)


def _ever(run: Run, track: Track) -> bool:
    """Whether a track was ever above zero."""
    high = run.series(track.id, points=64).high
    return bool((high > 0).any())


def _line(
    run: Run, track: Track, start: int, t0: int, t1: int, points: int, factor: float
) -> tuple[Ints, NDArray[np.float64], bool]:
    series = run.series(track.id, start + t0, start + t1, points=points)
    usual = Intervals().usual(run, track.id) if len(series.t_ns) > 1 else None
    x, y = to_curve(series, start, usual, factor)
    return np.rint(x * 1e9).astype(np.int64), y, bool(series.exact)


def region(run: Run, t0: int, t1: int) -> Region | None:
    """What the probe's steps say of [t0, t1), ns of the run; None where there are none."""
    process = training_process(run)
    if process is None or run.meta.get("kind") == "import":
        return None
    margin = 60 * 10**9  # a step may begin long before it ends
    steps = load_steps(run, process, run.start_ns + t0, run.start_ns + t1 + margin)
    return of_steps(steps, t0, t1, run.start_ns) if len(steps) else None
