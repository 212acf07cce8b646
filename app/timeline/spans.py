"""Spans as columns: every lane has rows in which spans are disjoint and rise. Free of Qt.

A span's number is its place in the columns; those of a row lie side by side. Times
are ns since the run's start. `colour` is a place in COLOURS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Small = NDArray[np.uint8]

COLOURS = ("data", "h2d", "forward", "backward", "optimizer", "communication", "sync", "other")
CODE = {name: code for code, name in enumerate(COLOURS)}
_COLUMNS = ("start", "end", "colour", "name", "ref")


@dataclass(frozen=True)
class Lane:
    """`kind`: steps, stages, host, python, stream. Its rows are `first` to `first + rows` of the model."""

    key: str
    title: str
    note: str
    kind: str
    first: int
    rows: int
    process: int = -1  # number of the trace's process in the helper; -1: not from a trace


@dataclass(frozen=True)
class Counter:
    """A line over time that comes from a trace. `note` names the unit of its values."""

    key: str
    title: str
    note: str
    process: int = -1


class Row:
    """The spans of one row, with what drawing needs: the time of each colour up to every span."""

    def __init__(self, start: Ints, end: Ints, colour: Small) -> None:
        self.start, self.end = start, end
        self.palette, self.code = np.unique(colour, return_inverse=True)  # colours that occur, and whose

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def filled(self) -> Ints:
        """int64[n + 1, colours]: ns of each colour in all spans before a place."""
        total = np.zeros((len(self) + 1, len(self.palette)), np.int64)
        length = self.end - self.start
        for k in range(len(self.palette)):
            np.cumsum(np.where(self.code == k, length, 0), out=total[1:, k])
        return total

    def at(self, t: float) -> int:
        """The span that holds `t`, as its place in the row; -1 between spans."""
        i = int(np.searchsorted(self.start, t, "right")) - 1
        return i if i >= 0 and self.end[i] > t else -1

    def near(self, t: float, reach: float) -> int:
        """The span that holds `t`, else the closest within `reach` ns; -1 without one."""
        if (found := self.at(t)) >= 0 or not len(self):
            return found
        i = int(np.searchsorted(self.start, t, "right"))
        best, distance = -1, reach
        for k in (i - 1, i):
            if 0 <= k < len(self):
                away = float(t - self.end[k]) if k < i else float(self.start[k] - t)
                if away <= distance:
                    best, distance = k, away
        return best


@dataclass(frozen=True, eq=False)
class Model:
    """All lanes of a run. `edges[r]` to `edges[r + 1]` are the spans of row r.

    `gaps` are the idle times of a stream with what they went to: row of the lane they
    are drawn in, times, and name. `notes`: what could not be read, for the user.
    """

    lanes: tuple[Lane, ...]
    names: tuple[str, ...]
    edges: Ints
    start: Ints
    end: Ints
    colour: Small
    name: Codes
    ref: Codes
    gaps: Mapping[str, Ints] = field(default_factory=dict)  # row, start, end, name
    counters: tuple[Counter, ...] = ()
    points: tuple[tuple[Ints, NDArray[np.float64]], ...] = ()  # of each counter: times, values from each on
    notes: tuple[str, ...] = ()
    range_ns: tuple[int, int] = (0, 0)  # of the run
    traced: tuple[tuple[int, int], ...] = ()  # times that traces cover

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        parts = [slice(a, b) for a, b in zip(self.edges[:-1].tolist(), self.edges[1:].tolist())]
        return tuple(Row(self.start[p], self.end[p], self.colour[p]) for p in parts)

    def prepare(self) -> Model:
        """Work out what the first frame needs; to be called off the GUI thread."""
        for row in self.rows:
            _ = row.filled
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """First and last instant of the run and of its traces, ns."""
        times = (self.range_ns, *self.traced)
        return float(min(a for a, _ in times)), float(max(b for _, b in times))

    def row_of(self, span: int) -> int:
        return int(np.searchsorted(self.edges, span, "right")) - 1

    def lane(self, span: int) -> Lane:
        """The lane that a span lies in."""
        row = self.row_of(span)
        return next(lane for lane in self.lanes if lane.first <= row < lane.first + lane.rows)

    def text(self, span: int) -> str:
        code = int(self.name[span])
        return self.names[code] if code >= 0 else ""

    def find(self, text: str) -> Ints:
        """Numbers of the spans whose name has `text` in it, whatever its case, by start: int64[n]."""
        text = text.casefold().strip()
        if not text:
            return np.zeros(0, np.int64)
        wanted = np.array([text in name.casefold() for name in self.names] + [False])
        found = np.flatnonzero(wanted[self.name])
        return found[np.argsort(self.start[found], kind="stable")]


class Builder:
    """Gathers lanes; `model` puts their columns together."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.names: dict[str, int] = {}
        self.notes: list[str] = []
        self.gaps: list[tuple[int, Ints, Ints, Codes]] = []
        self.counters: list[Counter] = []
        self.points: list[tuple[Ints, NDArray[np.float64]]] = []
        self._parts: list[dict[str, Any]] = []
        self._lengths: list[int] = []

    def code(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def codes(self, names: Sequence[str], column: Codes) -> Codes:
        """The numbers here of texts that are numbered elsewhere: only those that are used are taken in."""
        table = np.full(len(names) + 1, -1, np.int32)
        for one in np.unique(column[column >= 0]).tolist():
            table[one] = self.code(names[one])
        return table[column]

    def add(
        self,
        key: str,
        title: str,
        note: str,
        kind: str,
        columns: Mapping[str, Any],
        depth: Ints,
        process: int = -1,
    ) -> Lane | None:
        """A lane from columns in order of start; `depth` is the row of each span. None of nothing."""
        if not len(depth):
            return None
        rows = int(depth.max()) + 1
        order = np.argsort(depth, kind="stable")
        lane = Lane(key, title, note, kind, len(self._lengths), rows, process)
        self._parts.append({name: np.asarray(columns[name])[order] for name in _COLUMNS})
        self._lengths += np.bincount(depth, minlength=rows).tolist()
        self.lanes.append(lane)
        return lane

    def add_gaps(self, row: int, start: Ints, end: Ints, name: Codes) -> None:
        self.gaps.append((row, start, end, name))

    def add_counter(self, counter: Counter, t: Ints, value: NDArray[Any]) -> None:
        if len(t):
            self.counters.append(counter)
            self.points.append((t.astype(np.int64), value.astype(np.float64)))

    def model(self, range_ns: tuple[int, int], traced: Sequence[tuple[int, int]] = ()) -> Model:
        kinds = {"start": np.int64, "end": np.int64, "colour": np.uint8, "name": np.int32, "ref": np.int32}
        columns = {
            name: np.concatenate([np.zeros(0, kind), *(p[name] for p in self._parts)]).astype(kind)
            for name, kind in kinds.items()
        }
        edges = np.concatenate(([0], np.cumsum(self._lengths))).astype(np.int64)
        gaps = {
            name: np.concatenate([np.zeros(0, np.int64), *(found[k] for found in self._gap_columns())])
            for k, name in enumerate(("row", "start", "end", "name"))
        }
        return Model(
            tuple(self.lanes),
            tuple(self.names),
            edges,
            gaps=gaps,
            counters=tuple(self.counters),
            points=tuple(self.points),
            notes=tuple(self.notes),
            range_ns=range_ns,
            traced=tuple(traced),
            **columns,
        )

    def _gap_columns(self) -> list[tuple[Ints, Ints, Ints, Ints]]:
        return [
            (np.full(len(start), row, np.int64), start, end, name.astype(np.int64))
            for row, start, end, name in self.gaps
        ]


EMPTY = Builder().model((0, 1))


def save(model: Model, path: Path) -> None:
    """Write a model as one file of arrays."""
    told = {
        "lanes": [asdict(lane) for lane in model.lanes],
        "names": model.names,
        "notes": model.notes,
        "counters": [asdict(counter) for counter in model.counters],
        "range_ns": model.range_ns,
        "traced": model.traced,
    }
    arrays: dict[str, Any] = {name: getattr(model, name) for name in (*_COLUMNS, "edges")}
    arrays |= {f"gap_{name}": value for name, value in model.gaps.items()}
    arrays |= {
        f"point_{what}_{k}": column for k, pair in enumerate(model.points) for what, column in zip("tv", pair)
    }
    text = np.frombuffer(json.dumps(told).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, about=text, **arrays)


def load(path: Path) -> Model:
    """Read what `save` wrote."""
    with np.load(path, allow_pickle=False) as file:
        told = json.loads(file["about"].tobytes())
        gaps = {name: file[f"gap_{name}"] for name in ("row", "start", "end", "name")}
        arrays = {name: file[name] for name in (*_COLUMNS, "edges")}
        points = tuple((file[f"point_t_{k}"], file[f"point_v_{k}"]) for k in range(len(told["counters"])))
    return Model(
        tuple(Lane(**lane) for lane in told["lanes"]),
        tuple(told["names"]),
        gaps=gaps,
        counters=tuple(Counter(**counter) for counter in told["counters"]),
        points=points,
        notes=tuple(told["notes"]),
        range_ns=tuple(told["range_ns"]),
        traced=tuple(tuple(pair) for pair in told["traced"]),
        **arrays,
    )
