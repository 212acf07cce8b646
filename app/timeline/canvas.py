"""The lanes: names at the left, time to the right. Painted as one surface; no object for a span."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QScrollBar, QSizePolicy, QToolTip, QWidget

from app import theme
from app.timeline import frame, gutter, layout, overlay
from app.timeline.frame import Frame
from app.timeline.layout import Placed
from app.timeline.scene import Scene
from app.timeline.view import View
from app.widgets.basic import tip
from profiler.units import format_time

GUTTER, BAR = 176, 10  # px: names of lanes, scroll bar
REACH = 4  # px beside a span at which it is still meant
MOVED = 4  # px from which a press is a drag
ZOOM = 1.25  # a notch of the wheel
LEFT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton


class Canvas(QWidget):
    """Draws the scene in the view; says what the user chose."""

    details_wanted = Signal()
    menu_wanted = Signal(object, object)  # Placed, QPoint on the screen

    def __init__(self, scene: Scene, view: View, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene, self.view = scene, view
        self._press: QPointF | None = None
        self._panned: QPointF | None = None
        self._dragged = False
        self.pointer: float | None = None  # px of the pointer over the plot
        self.bar = QScrollBar(Qt.Orientation.Vertical, self)
        self.bar.valueChanged.connect(self.update)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(96)
        self.setAccessibleName("Lanes")
        for signal in (
            view.changed,
            scene.region_changed,
            scene.selected_changed,
            scene.drawn_changed,
            theme.changed,
        ):
            signal.connect(self.update)
        scene.lanes_changed.connect(self._fit_bar)

    @property
    def plot(self) -> QRectF:
        return QRectF(GUTTER, 0, max(1, self.width() - GUTTER - BAR), self.height())

    def make_frame(self) -> Frame:
        return frame.make(
            self.scene, self.plot, self.view.x0, self.view.x1, self.devicePixelRatioF(), self.bar.value()
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        drawn = self.make_frame()
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("raised"))
        overlay.ground(painter, drawn)
        frame.Painter(drawn).draw(painter)
        overlay.over(painter, drawn)
        gutter.draw(painter, drawn, GUTTER, float(self.width()))
        if self.hasFocus():
            overlay.focus(painter, QRectF(self.rect()).adjusted(0, 0, -BAR, 0))
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit_bar()

    def _fit_bar(self) -> None:
        top = self.scene.top
        self.bar.setGeometry(self.width() - BAR, top, BAR, max(0, self.height() - top))
        self.bar.setPageStep(self.height())
        self.bar.setSingleStep(40)
        self.bar.setRange(0, max(0, self.scene.height - self.height()))
        self.update()

    # What is where.

    def placed_at(self, y: float) -> Placed | None:
        if y < self.scene.top:
            return layout.at(self.scene.placed, y)
        return layout.at([p for p in self.scene.placed if not p.pinned], y + self.bar.value())

    def span_at(self, at: QPointF) -> int:
        """Number of the span under a point, or a few px beside it; -1 without one."""
        drawn = self.make_frame()  # what was painted last may be of another view
        placed = self.placed_at(at.y())
        if placed is None or placed.strip.kind == "counter" or at.x() < GUTTER:
            return -1
        row = layout.row_at(placed, at.y() + placed.y - drawn.y(placed))
        if row < 0:
            return -1
        place = self.scene.model.rows[row].near(drawn.t(at.x()), REACH * drawn.ns_per_px)
        return int(self.scene.model.edges[row]) + place if place >= 0 else -1

    def show_row(self, row: int) -> None:
        """Scroll until a row is in view."""
        where = self.scene.placed_of(row)
        if where is None or where[0].pinned:
            return
        placed = where[0]
        top, bottom = placed.y - self.scene.top, placed.y + placed.height - self.height()
        self.bar.setValue(min(max(self.bar.value(), bottom), top))

    # The mouse.

    def wheelEvent(self, event: QWheelEvent) -> None:
        turn, across = event.angleDelta().y(), event.angleDelta().x()
        held = event.modifiers()
        if event.position().x() < GUTTER or held & Qt.KeyboardModifier.ControlModifier:
            self.bar.setValue(self.bar.value() - turn)
        elif across or held & Qt.KeyboardModifier.ShiftModifier:
            self.view.pan(-(across or turn) / 120 * 0.1)
        elif turn:
            self.view.zoom(ZOOM ** (-turn / 120), self.make_frame().t(event.position().x()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if event.button() == MIDDLE and at.x() >= GUTTER:
            self._panned = at
        elif event.button() == LEFT and at.x() < GUTTER:
            if (placed := self.placed_at(at.y())) is not None:
                self.scene.arrangement.toggle(placed)
                self.scene.arrange()
        elif event.button() == LEFT:
            self._press, self._dragged = at, False
        elif event.button() == Qt.MouseButton.RightButton and (placed := self.placed_at(at.y())) is not None:
            self.menu_wanted.emit(placed, event.globalPosition().toPoint())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        self.pointer = at.x() if at.x() >= GUTTER else None
        if self._panned is not None:
            self.view.pan((self._panned.x() - at.x()) / self.plot.width())
            self._panned = at
        elif self._press is not None and (self._dragged or abs(at.x() - self._press.x()) >= MOVED):
            self._dragged = True
            drawn = self.make_frame()
            times = sorted(
                round(drawn.t(min(max(x, drawn.plot.left()), drawn.plot.right())))
                for x in (self._press.x(), at.x())
            )
            self.scene.choose_region((times[0], times[1]))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        press, self._press, self._panned = self._press, None, None
        if event.button() != LEFT or press is None or self._dragged:
            return
        span = self.span_at(press)
        self.scene.select(span)
        if span >= 0 and self.scene.model.lane(span).kind == "steps":
            self.scene.choose_region((int(self.scene.model.start[span]), int(self.scene.model.end[span])))
        self._tell_selected()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Bring the span to the width of the view."""
        span = self.span_at(event.position())
        if event.button() == LEFT and span >= 0:
            start, end = float(self.scene.model.start[span]), float(self.scene.model.end[span])
            room = 0.2 * (end - start)
            self.view.show_range(start - room, end + room)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By the key: the menu of the lane of the selected span. By the mouse it is a press."""
        if event.reason() != QContextMenuEvent.Reason.Keyboard or self.scene.selected < 0:
            return
        where = self.scene.placed_of(self.scene.model.row_of(self.scene.selected))
        if where is not None:
            y = self.make_frame().y(where[0])
            self.menu_wanted.emit(where[0], self.mapToGlobal(QPoint(GUTTER, y)))

    def leaveEvent(self, event: QEvent) -> None:
        self.pointer = None

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            self._show_tip(QPointF(event.pos()), event.globalPos())
            return True
        return super().event(event)

    def _show_tip(self, at: QPointF, where: QPoint) -> None:
        span = self.span_at(at)
        if span < 0:
            placed = self.placed_at(at.y()) if at.x() < GUTTER else None
            text = f"{placed.strip.title}, {placed.strip.note}".rstrip(", ") if placed is not None else ""
        else:
            model = self.scene.model
            length = format_time(float(model.end[span] - model.start[span]))
            text = f"{model.text(span)[:500]}\n{length}"
        QToolTip.showText(where, tip(text), self)

    # The keyboard.

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        steps = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        if key in steps:
            self.walk(*steps[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.details_wanted.emit()
        elif key == Qt.Key.Key_Escape:
            self.scene.choose_region(None)
            self.scene.select(-1)
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.bar.setValue(
                self.bar.value() + (1 if key == Qt.Key.Key_PageDown else -1) * self.height() // 2
            )
        else:
            super().keyPressEvent(event)

    def walk(self, across: int, down: int) -> None:
        """Select the next span in the row, or in the row above or below; the first in view to begin with."""
        scene = self.scene
        if scene.selected < 0:
            drawn = self.make_frame()
            for placed in scene.placed:
                for row, _, _ in placed.rows() if placed.strip.kind != "counter" else ():
                    place = scene.model.rows[row].near(drawn.t(drawn.plot.center().x()), self.view.span / 2)
                    if place >= 0:
                        scene.select(int(scene.model.edges[row]) + place)
                        self._tell_selected()
                        return
            return
        if across:
            scene.select(scene.neighbour(scene.selected, across))
        else:
            middle = (float(scene.model.start[scene.selected]) + float(scene.model.end[scene.selected])) / 2
            t = min(max(middle, self.view.x0), self.view.x1)
            scene.select(scene.above_or_below(scene.selected, down, t))
        self.reveal(scene.selected)

    def reveal(self, span: int) -> None:
        """Bring a span into view, in time and among the lanes."""
        model = self.scene.model
        self.view.reveal(float(model.start[span]), float(model.end[span]))
        self.show_row(model.row_of(span))
        self._tell_selected()

    def _tell_selected(self) -> None:
        model, span = self.scene.model, self.scene.selected
        text = ""
        if span >= 0:
            length = format_time(float(model.end[span] - model.start[span]))
            text = f"{model.lane(span).title}: {model.text(span)}, {length}"
        self.setAccessibleDescription(text)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()
