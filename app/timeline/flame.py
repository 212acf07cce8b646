"""The flame view's rows: host operators or modules of a stretch of time, in order or summed. Free of Qt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.timeline.build import depths
from app.timeline.spans import Codes, Ints, Lane, Model, Row
from profiler.analysis.trace.code.owners import MODULE
from profiler.units import format_count, format_time

TIME, HEAVY, MODULES = "time", "heavy", "modules"
MOST = 200_000  # spans that are summed; beyond that the region is too long to be worth it


@dataclass(frozen=True, eq=False)
class Flame:
    """Rows from the outermost; `names[k]` of the spans of row k as codes of the model, `counts[k]` of each.

    `ids[k]`: numbers of the spans in the model; -1 where a box stands for several. In HEAVY and MODULES x
    is time that is summed, from 0.
    """

    rows: tuple[Row, ...] = ()
    names: tuple[Codes, ...] = ()
    counts: tuple[Ints, ...] = ()
    ids: tuple[Ints, ...] = ()
    x0: int = 0
    x1: int = 1
    total: int = 0  # spans


def lane_of(model: Model, region: tuple[int, int], kind: str = "host", chosen: str = "") -> Lane | None:
    """The thread that is shown: the chosen lane, else of its kind the first with spans in the region."""
    if (own := next((lane for lane in model.lanes if lane.key == chosen), None)) is not None:
        return own
    for lane in model.lanes:
        if lane.kind == kind and any(
            _inside(model.rows[r], region) for r in range(lane.first, lane.first + lane.rows)
        ):
            return lane
    return next((lane for lane in model.lanes if lane.kind == "stages"), None) if kind == "host" else None


def _inside(row: Row, region: tuple[int, int]) -> bool:
    a = int(np.searchsorted(row.end, region[0], "right"))
    return a < len(row) and int(row.start[a]) < region[1]


def in_order(model: Model, lane: Lane, region: tuple[int, int]) -> Flame:
    """The spans of a lane that lie in the region or reach into it, cut at its ends."""
    rows, names, counts, ids = [], [], [], []
    for number in range(lane.first, lane.first + lane.rows):
        row, first = model.rows[number], int(model.edges[number])
        a = int(np.searchsorted(row.end, region[0], "right"))
        b = int(np.searchsorted(row.start, region[1], "left"))
        if b <= a:
            continue
        own = slice(first + a, first + b)
        rows.append(
            Row(np.maximum(row.start[a:b], region[0]), np.minimum(row.end[a:b], region[1]), model.colour[own])
        )
        names.append(model.name[own])
        counts.append(np.ones(b - a, np.int64))
        ids.append(np.arange(first + a, first + b))
    return Flame(
        tuple(rows),
        tuple(names),
        tuple(counts),
        tuple(ids),
        region[0],
        region[1],
        sum(len(row) for row in rows),
    )


def heavy(flame: Flame) -> Flame:
    """The same calls summed by their path, the longest at the left."""
    if not flame.rows or flame.total > MOST:
        return Flame(total=flame.total)
    parent = np.zeros(1, np.int64)  # of the boxes of the row above: where each begins
    owners: list[Ints] = []  # of each row: the box that every span went into
    rows, names, counts = [], [], []
    for depth, row in enumerate(flame.rows):
        above = np.zeros(len(row), np.int64) if depth == 0 else _above(flame.rows[depth - 1], owners[-1], row)
        key = above * (1 << 32) + flame.names[depth].astype(np.int64) + 1
        distinct, first, box = np.unique(key, return_index=True, return_inverse=True)
        long = np.bincount(box, row.end - row.start, len(distinct)).astype(np.int64)
        order = np.lexsort((-long, distinct >> 32))
        start = _packed(distinct[order] >> 32, long[order], parent)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        by_start = np.argsort(start, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[by_start] = np.arange(len(order))
        owners.append(rank[place[box]])
        chosen = order[by_start]
        code = row.palette[row.code[first[chosen]]].astype(np.uint8)
        rows.append(Row(start[by_start], start[by_start] + np.maximum(long[chosen], 1), code))
        names.append(flame.names[depth][first[chosen]])
        counts.append(np.bincount(box, minlength=len(distinct))[chosen])
        parent = start[by_start]
    end = int(rows[0].end[-1])
    none = tuple(np.full(len(row), -1, np.int64) for row in rows)
    return Flame(tuple(rows), tuple(names), tuple(counts), none, 0, max(end, 1), flame.total)


def _above(row: Row, owner: Ints, below: Row) -> Ints:
    """The box of the span that each span of the next row lies in."""
    at = np.maximum(np.searchsorted(row.start, below.start, "right") - 1, 0)
    found: Ints = owner[at]
    return found


def _packed(group: Ints, long: Ints, parent: Ints) -> Ints:
    """Where each box begins: side by side from the start of the box that it lies in."""
    before = np.cumsum(long) - long
    first = np.concatenate(([True], group[1:] != group[:-1]))
    base = before[np.maximum.accumulate(np.where(first, np.arange(len(group)), 0))]
    start: Ints = parent[group] + before - base
    return start


def modules(model: Model, region: tuple[int, int]) -> Flame:
    """Calls of nn.Modules of the loop's thread, summed by their path; empty where the trace has none."""
    lane = lane_of(model, region, "python")
    if lane is None:
        return Flame()
    wanted = np.array([name.startswith(MODULE) for name in model.names] + [False])
    a, b = int(model.edges[lane.first]), int(model.edges[lane.first + lane.rows])
    own = a + np.flatnonzero(
        wanted[model.name[a:b]] & (model.start[a:b] < region[1]) & (model.end[a:b] > region[0])
    )
    if not len(own):
        return Flame()
    own = own[np.lexsort((-model.end[own], model.start[own]))]
    start, end = np.maximum(model.start[own], region[0]), np.minimum(model.end[own], region[1])
    depth = depths(start, end, np.zeros(len(own), np.int32))
    parts = [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]
    flat = Flame(
        tuple(Row(start[p], end[p], model.colour[own[p]]) for p in parts),
        tuple(model.name[own[p]] for p in parts),
        tuple(np.ones(len(p), np.int64) for p in parts),
        tuple(own[p] for p in parts),
        region[0],
        region[1],
        len(own),
    )
    return heavy(flat)


def compute(model: Model, where: tuple[int, int], order: str, chosen: str = "") -> tuple[Flame, str]:
    """What the view shows of a stretch of time, and the line that says what it is, or why it is empty.

    `chosen`: key of the lane of the selected span, where that is a host's.
    """
    long = format_time(where[1] - where[0])
    if order == MODULES:
        found = modules(model, where)
        return (
            found,
            f"modules, {long}, widths are host time, summed"
            if found.rows
            else "The trace has no modules here: record it with stacks and modules",
        )
    lane = lane_of(model, where, chosen=chosen)
    if lane is None:
        return Flame(), "No host spans here"
    found = in_order(model, lane, where)
    if order == TIME:
        return found, f"{lane.title}, {long}, widths are host time"
    summed = heavy(found)
    return (
        summed,
        f"{lane.title}, {long}, widths are host time, summed"
        if summed.rows
        else f"{format_count(found.total)} spans are too many to sum: choose a shorter region",
    )
