"""What the user does on the timeline: keys, buttons, menus of lanes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from app.timeline.body import TimelineBody
from app.timeline.layout import CLOSED, WHOLE, Placed
from app.timeline.scene import Scene
from app.timeline.view import View

PAN, ZOOM = 0.1, 1.5  # of the view; for a press of a key


class Deeds(QWidget):
    """A widget with the parts of the timeline, and the slots behind its keys."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene, self.view = Scene(self), View(self)
        self.body = TimelineBody(self.scene, self.view, self)
        self._hit = -1
        self.body.canvas.menu_wanted.connect(self.show_menu)
        self.body.flame.chosen.connect(self.show_span)
        self.body.tools.searched.connect(self.search)
        self.body.tools.stepped.connect(self.next_hit)
        self.body.tools.pressed.connect(lambda what: getattr(self, what)())
        for key, do in self._keys().items():
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(do)

    def _keys(self) -> dict[str, Callable[[], None]]:
        return {
            "W": self.zoom_in,
            "S": self.zoom_out,
            "A": self.pan_left,
            "D": self.pan_right,
            "F": self.fit,
            "P": self.pin,
            "R": self.choose_span_as_region,
            ".": self.next_step,
            ",": self.previous_step,
            "Ctrl+F": self.focus_search,
        }

    def _pointer(self) -> float:
        """The time under the pointer, or in the middle."""
        x = self.body.canvas.pointer
        return (self.view.x0 + self.view.x1) / 2 if x is None else self.body.canvas.make_frame().t(x)

    def zoom_in(self) -> None:
        self.view.zoom(1 / ZOOM, self._pointer())

    def zoom_out(self) -> None:
        self.view.zoom(ZOOM, self._pointer())

    def pan_left(self) -> None:
        self.view.pan(-PAN)

    def pan_right(self) -> None:
        self.view.pan(PAN)

    def fit(self) -> None:
        """The region; where that fills the view already, and without one, everything."""
        chosen = self.scene.region
        if chosen is not None and self.view.span > 1.2 * (chosen[1] - chosen[0]):
            self.view.fit(*map(float, chosen))
        else:
            self.view.fit()

    def mark(self) -> None:
        """A mark at the pointer; on one that is there already it goes away."""
        t = round(self._pointer())
        near = [
            m for m in self.scene.marks if abs(m - t) < 5 * self.view.span / self.body.canvas.plot.width()
        ]
        self.scene.marks = (
            sorted(set(self.scene.marks) - set(near)) if near else sorted([*self.scene.marks, t])
        )
        self.scene.drawn_changed.emit()

    def pin(self) -> None:
        """Pin the lane of the selected span, or let it go."""
        row = self.scene.model.row_of(self.scene.selected) if self.scene.selected >= 0 else -1
        where = self.scene.placed_of(row) if row >= 0 else None
        if where is not None:
            self.scene.arrangement.pin(where[0].strip.key)
            self.scene.arrange()

    def choose_span_as_region(self) -> None:
        """The time of the selected span becomes the region."""
        model, span = self.scene.model, self.scene.selected
        if span >= 0:
            self.scene.choose_region((int(model.start[span]), int(model.end[span])))

    def next_step(self) -> None:
        self._step(1)

    def previous_step(self) -> None:
        self._step(-1)

    def _step(self, way: int) -> None:
        """Choose the next step after the region, or the first in view."""
        start, end = self.scene.steps()
        if not len(start):
            return
        chosen = self.scene.region
        if chosen is None:
            at = int(np.searchsorted(end, self.view.x0, "right"))
        elif way > 0:
            at = int(np.searchsorted(start, chosen[0], "right"))
        else:
            at = int(np.searchsorted(start, chosen[0], "left")) - 1
        at = min(max(at, 0), len(start) - 1)
        self.scene.choose_region((int(start[at]), int(end[at])))
        self.view.reveal(float(start[at]), float(end[at]))

    def focus_search(self) -> None:
        self.body.tools.field.setFocus()
        self.body.tools.field.selectAll()

    def search(self, text: str) -> None:
        self.scene.search(text)
        self._hit = -1
        self.body.tools.show_hits(-1, len(self.scene.found))

    def next_hit(self, way: int) -> None:
        """Go to the next span that was found; the first one is that after the middle of the view."""
        found = self.scene.found
        if not len(found):
            return
        if self._hit < 0:
            middle = (self.view.x0 + self.view.x1) / 2
            self._hit = int(np.searchsorted(self.scene.model.start[found], middle)) - (way < 0)
        else:
            self._hit += way
        self._hit %= len(found)
        self.body.tools.show_hits(self._hit, len(found))
        self.show_span(int(found[self._hit]))

    def show_span(self, span: int) -> None:
        """Select a span and bring it into view; its lane unfolds where it is folded."""
        row = self.scene.model.row_of(span)
        lane = self.scene.model.lane(span)
        arrangement = self.scene.arrangement
        if lane.key in arrangement.hidden or self.scene.placed_of(row) is None:
            arrangement.hidden.discard(lane.key)
            arrangement.state[lane.key] = WHOLE
            self.scene.arrange()
        self.scene.select(span)
        self.body.canvas.reveal(span)

    def show_menu(self, placed: Placed, at: QPoint) -> None:
        menu, arrangement, key = QMenu(self), self.scene.arrangement, placed.strip.key

        def change(do: Callable[[], None]) -> None:
            do()
            self.scene.arrange()

        menu.addAction("Let go" if placed.pinned else "Pin", lambda: change(partial(arrangement.pin, key)))
        menu.addAction(
            "Unfold" if placed.state == CLOSED else "Fold",
            lambda: change(partial(arrangement.toggle, placed)),
        )
        menu.addAction("Hide", lambda: change(partial(arrangement.hidden.add, key)))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(at)
