"""Linked charts: one time axis, one crosshair, the same gutters."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import theme
from app.widgets.chart_data import CurveData, Folded, Row, StepBars, Stretch
from app.widgets.chart_row import ChartRow
from app.widgets.curve import CurveRow
from app.widgets.folded_row import FoldedRow
from app.widgets.heat_strip import HeatStrip
from app.widgets.scroll import scrolled
from app.widgets.step_strip import StepStrip
from app.widgets.time_axis import TimeAxis
from app.widgets.time_view import TimeView

CLICK_PX = 4  # a press that moves less is a click
ZOOM = 1.25  # for a notch of the wheel
PAN = 0.1  # of the span, for a key
_REASON = Qt.FocusReason
KEYBOARD = (_REASON.TabFocusReason, _REASON.BacktabFocusReason, _REASON.ShortcutFocusReason)


class _Ground(QWidget):
    """Behind the rows: what they leave over looks like more of the pane."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("raised"))
        painter.end()


class _Ring(QWidget):
    """The focus, over everything."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(theme.colour("acc"), 2))
        painter.drawRect(self.rect().adjusted(1, 1, -1, -1))
        painter.end()


class ChartStack(QWidget):
    """Rows by their data: curves, step bars, a heat strip, or one folded line with a reason.

    The wheel zooms at the cursor, a drag pans, a click pins the crosshair.
    """

    zoomed = Signal()  # by the user

    def __init__(self, view: TimeView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = view
        self.rows: dict[str, ChartRow | FoldedRow] = {}
        self._hovered: float | None = None  # x of the pointer on a row
        self._pressed: QPointF | None = None
        self._dragged = False
        self._ground = _Ground()
        self._box = QVBoxLayout(self._ground)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(0)
        area = scrolled(self._ground)
        area.viewport().installEventFilter(self)  # a scroll bar takes of the charts' width, not of the axis'
        self._area = area
        self.axis = TimeAxis(view)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(area, 1)
        box.addWidget(self.axis)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Charts over time")
        self.setMinimumWidth(480)
        view.changed.connect(self._follow_pointer)
        self._ring = _Ring(self)
        self._by_keyboard = False  # the last focus came by a key

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._ring.setGeometry(self.rect())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        reason = event.reason()
        # A click needs no ring: the pointer says where it is. Nor does a window that comes back.
        if reason in (Qt.FocusReason.MouseFocusReason, *KEYBOARD):
            self._by_keyboard = reason in KEYBOARD
        self._ring.setVisible(self._by_keyboard)
        self._ring.raise_()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ring.hide()

    def show_rows(
        self, rows: Sequence[Row], digits: bool, recording: bool, marks: Sequence[Stretch] = ()
    ) -> None:
        """Draw these rows; texts of values change only with `digits`. The first one names the marks."""
        wanted = [(row.key, _widget_type(row)) for row in rows]
        if wanted != [(key, type(widget)) for key, widget in self.rows.items()]:
            self._rebuild(rows)
            digits = True
        for i, row in enumerate(rows):
            widget = self.rows[row.key]
            if isinstance(widget, ChartRow):
                widget.recording = recording
                widget.marks, widget.names_marks = tuple(marks), i == 0
                widget.set_data(row.data, digits)
            elif isinstance(row.data, Folded):
                widget.set_data(row.data)

    def plot_width(self) -> float:
        """Pixels of the plots; before the first row those of the stack."""
        for widget in self.rows.values():
            if isinstance(widget, ChartRow):
                return widget.plot_rect().width()
        return max(1.0, self.width() - 280.0)

    def renders(self) -> int:
        """How often any plot was drawn anew."""
        return sum(w.renders for w in self.rows.values() if isinstance(w, ChartRow))

    def _rebuild(self, rows: Sequence[Row]) -> None:
        kept = dict(self.rows)
        self.rows = {}
        while self._box.count():
            self._box.takeAt(0)
        for row in rows:
            widget = kept.get(row.key)
            if widget is None or type(widget) is not _widget_type(row):
                widget = self._make(row)
            else:
                del kept[row.key]
            self.rows[row.key] = widget
            self._box.addWidget(widget)
            widget.show()
        for widget in kept.values():
            widget.hide()
            widget.deleteLater()
        if not any(isinstance(w, ChartRow) for w in self.rows.values()):
            self._box.addStretch(1)

    def _make(self, row: Row) -> ChartRow | FoldedRow:
        if isinstance(row.data, Folded):
            return FoldedRow(row.title, self._ground)
        widget: ChartRow
        if isinstance(row.data, CurveData):
            widget = CurveRow(row.title, self.view, row.height, self._ground)
            widget.throttle_hatch = row.throttle_hatch
        elif isinstance(row.data, StepBars):
            widget = StepStrip(row.title, self.view, row.height, self._ground)
        else:
            widget = HeatStrip(row.title, self.view, row.height, self._ground)
        widget.installEventFilter(self)
        return widget

    # Pointer and keys.

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._area.viewport() and isinstance(event, QResizeEvent):
            self.axis.set_inset(self.width() - event.size().width())
        if not isinstance(watched, ChartRow):
            return False
        kind = event.type()
        if isinstance(event, QWheelEvent):
            return self._wheel(watched, event)
        if isinstance(event, QMouseEvent):
            if kind == QEvent.Type.MouseButtonPress and event.button() == Qt.MouseButton.LeftButton:
                self._pressed, self._dragged = event.position(), False
                self.setFocus(Qt.FocusReason.MouseFocusReason)
                return True
            if kind == QEvent.Type.MouseMove:
                self._move(watched, event)
                return True
            if kind == QEvent.Type.MouseButtonRelease and self._pressed is not None:
                if not self._dragged:
                    self._click(watched, event.position().x())
                self._pressed = None
                return True
        if kind == QEvent.Type.Leave:
            self._hovered = None
            if not self.view.pinned:
                self.view.set_crosshair(None)
        return False

    def _move(self, row: ChartRow, event: QMouseEvent) -> None:
        x = event.position().x()
        if self._pressed is not None and event.buttons() & Qt.MouseButton.LeftButton:
            moved = x - self._pressed.x()
            if self._dragged or abs(moved) >= CLICK_PX:
                self._dragged = True
                self.view.pan(-moved / row.plot_rect().width() * self.view.span)
                self._pressed = event.position()
                self.zoomed.emit()
            return
        self._hovered = x if row.plot_at(x) else None
        if not self.view.pinned:
            self.view.set_crosshair(row.to_seconds(x) if self._hovered is not None else None)

    def _click(self, row: ChartRow, x: float) -> None:
        """Pin the crosshair here; a click at a pinned one frees it."""
        if not row.plot_at(x):
            return
        at = self.view.crosshair
        if self.view.pinned and at is not None and abs(row.to_x(at) - x) <= CLICK_PX:
            self.view.set_crosshair(row.to_seconds(x), False)
        else:
            self.view.set_crosshair(row.to_seconds(x), True)

    def _wheel(self, row: ChartRow, event: QWheelEvent) -> bool:
        delta = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            bar = self._area.verticalScrollBar()
            bar.setValue(bar.value() - (delta.y() or delta.x()))
            return True
        if abs(delta.x()) > abs(delta.y()):
            self.view.pan(-delta.x() / 120 * PAN * self.view.span)
        elif delta.y() and row.plot_at(event.position().x()):
            self.view.zoom(ZOOM ** (-delta.y() / 120), row.to_seconds(event.position().x()))
        self.zoomed.emit()
        return True

    def _follow_pointer(self) -> None:
        """The view has moved under a pointer that rests: the crosshair stays at the pointer."""
        row = next((w for w in self.rows.values() if isinstance(w, ChartRow)), None)
        if row is not None and self._hovered is not None and not self.view.pinned:
            self.view.set_crosshair(row.to_seconds(self._hovered))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        middle = (self.view.x0 + self.view.x1) / 2
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.view.pan((PAN if key == Qt.Key.Key_Right else -PAN) * self.view.span)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.view.zoom(1 / ZOOM, middle)
        elif key in (Qt.Key.Key_Down, Qt.Key.Key_Minus):
            self.view.zoom(ZOOM, middle)
        elif key == Qt.Key.Key_Escape and self.view.crosshair is not None:
            self.view.set_crosshair(None)
        else:
            super().keyPressEvent(event)
            return
        self.zoomed.emit()


def _widget_type(row: Row) -> type[CurveRow] | type[StepStrip] | type[HeatStrip] | type[FoldedRow]:
    kinds: dict[type, type] = {
        CurveData: CurveRow, StepBars: StepStrip, Folded: FoldedRow,
    }
    return kinds.get(type(row.data), HeatStrip)
