"""What the timeline shows and what is chosen in it: one object that its widgets share."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QObject, Signal

from app.timeline import layout
from app.timeline.layout import Arrangement, Placed, Strip
from app.timeline.lod import Flags, marked
from app.timeline.recorded import CounterRow, Counters
from app.timeline.spans import EMPTY, Ints, Model
from profiler.rules.words import kernel_title

MOST = 200  # characters of a name that are looked at: a span is not wider


@lru_cache(maxsize=8192)
def short_name(name: str) -> str:
    """A name as it fits on a span: of a kernel without return type, namespaces and templates."""
    name = name[:MOST]
    text = kernel_title(name)
    if name.startswith("void ") or "<" in text:
        text = text.split("<")[0].split("(")[0]
        text = text.rsplit("::", 1)[-1] or name
    return text.removeprefix("nn.Module: ").removeprefix("autograd::engine::evaluate_function: ")


def same_span(before: Model, span: int, after: Model) -> int:
    """A span's number in another model of the same run; -1 where it is gone."""
    row, lane = before.row_of(span), before.lane(span)
    for other in after.lanes:
        if other.key == lane.key and row - lane.first < other.rows:
            found = other.first + row - lane.first
            place = after.rows[found].at(float(before.start[span]))
            return int(after.edges[found]) + place if place >= 0 else -1
    return -1


class Scene(QObject):
    """Signals say what changed; whoever draws that listens."""

    lanes_changed = Signal()  # model, counters or arrangement
    region_changed = Signal()
    selected_changed = Signal()
    drawn_changed = Signal()  # links, marks, search

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: Model = EMPTY
        self.counters = Counters()
        self.arrangement = Arrangement()
        self.strips: list[Strip] = []
        self.placed: list[Placed] = []
        self.top = 0  # height of the pinned lanes
        self.region: tuple[int, int] | None = None
        self.region_title = ""
        self.selected = -1
        self.links: tuple[tuple[int, int], ...] = ()
        self.marks: list[int] = []
        self.found: Ints = np.zeros(0, np.int64)
        self.searching, self.text = False, ""
        self._found_rows: dict[int, tuple[Ints, Ints]] = {}

    @property
    def height(self) -> int:
        return self.placed[-1].y + self.placed[-1].height if self.placed else 0

    def show_model(self, model: Model, keep: bool) -> None:
        """Another run, or with `keep` more of the same: then what was chosen stays chosen."""
        before, span = self.model, self.selected
        self.model = model
        self.arrange()
        if not keep:
            self.marks = []
            self.choose_region(None)
        self.selected, self.links = -1, ()
        if keep and span >= 0:
            self.selected = same_span(before, span, model)
        if self.selected != span or not keep:
            self.selected_changed.emit()
        self.search(self.text if keep else "")

    def show_counters(self, counters: Counters) -> None:
        same = [row.key for row in counters.rows] == [row.key for row in self.counters.rows]
        self.counters = counters
        if same:
            self.drawn_changed.emit()
        else:
            self.arrange()

    def arrange(self) -> None:
        """Place the lanes anew."""
        self.strips = layout.strips(self.model, self.counters)
        self.placed, self.top = layout.arrange(self.strips, self.arrangement)
        self.lanes_changed.emit()

    def counter(self, key: str) -> CounterRow | None:
        return next((row for row in self.counters.rows if row.key == key), None)

    def choose_region(self, region: tuple[int, int] | None) -> None:
        if region is not None and region[1] <= region[0]:
            region = None
        if region != self.region:
            self.region, self.region_title = region, ""
            self.region_changed.emit()

    def select(self, span: int) -> None:
        """Choose a span; -1 none."""
        if span != self.selected:
            self.selected, self.links = span, ()
            self.selected_changed.emit()

    def search(self, text: str) -> None:
        self.text = text
        self.searching = bool(text.strip())
        self.found = self.model.find(text)
        by_row = np.searchsorted(self.model.edges, self.found, "right") - 1
        self._found_rows = {}
        for row in np.unique(by_row).tolist():
            own = np.sort(self.found[by_row == row])
            self._found_rows[row] = self.model.start[own], self.model.end[own]
        self.drawn_changed.emit()

    def lit(self, row: int, edge: Ints) -> Flags | None:
        """Pixel columns of a row that hold something that was found; None while nothing is searched."""
        if not self.searching:
            return None
        if row not in self._found_rows:
            return np.zeros(len(edge) - 1, np.bool_)
        return marked(*self._found_rows[row], edge)

    def show_links(self, links: tuple[tuple[int, int], ...]) -> None:
        self.links = links
        self.drawn_changed.emit()

    def placed_of(self, row: int) -> tuple[Placed, int, int] | None:
        """The lane, y and height of a row of the model; None where it is not drawn."""
        for placed in self.placed:
            strip = placed.strip
            if strip.kind != "counter" and strip.first <= row < strip.first + strip.rows:
                return next(((placed, y, h) for r, y, h in placed.rows() if r == row), None)
        return None

    def neighbour(self, span: int, step: int) -> int:
        """The next span to the left (-1) or right (1) in its row; itself at the end."""
        row = self.model.row_of(span)
        other = span + step
        return other if self.model.edges[row] <= other < self.model.edges[row + 1] else span

    def above_or_below(self, span: int, step: int, t: float) -> int:
        """A span of the row drawn above (-1) or below (1), at `t` or nearest to it; itself without one."""
        drawn = [
            row for placed in self.placed if placed.strip.kind != "counter" for row, _, _ in placed.rows()
        ]
        row = self.model.row_of(span)
        at = drawn.index(row) + step if row in drawn else -1
        while 0 <= at < len(drawn):
            if len(self.model.rows[drawn[at]]):
                found = self.model.rows[drawn[at]].near(t, float("inf"))
                return int(self.model.edges[drawn[at]]) + found
            at += step
        return span

    def steps(self) -> tuple[Ints, Ints]:
        """Starts and ends of the steps of the first lane that has them."""
        for placed in self.placed:
            if placed.strip.kind == "steps":
                row = self.model.rows[placed.strip.first]
                return row.start, row.end
        none = np.zeros(0, np.int64)
        return none, none
