"""The flame view under the lanes: host operators of the region or of what is in view."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip, QVBoxLayout, QWidget

from app import theme
from app.timeline import lod, raster
from app.timeline.flame import HEAVY, MODULES, TIME, Flame
from app.timeline.frame import write_names
from app.timeline.look import image_of, look
from app.timeline.scene import Scene
from app.tokens import PADDING
from app.widgets.basic import PaneHeader, tip
from app.widgets.button import Segments
from app.widgets.paint import font, write
from profiler.units import format_count, format_time

ROW = 20  # px


class _Rows(QWidget):
    """Paints a Flame; a press on a span of the model selects it."""

    chosen = Signal(int)

    def __init__(self, scene: Scene, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene = scene
        self.flame = Flame()
        self.reason = ""
        self._scroll = 0
        self.setMinimumHeight(2 * ROW)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Flame view")
        theme.changed.connect(self.update)

    def show_flame(self, found: Flame, reason: str) -> None:
        self.flame, self.reason, self._scroll = found, reason, 0
        self.update()

    @property
    def plot(self) -> QRectF:
        return QRectF(PADDING, 8, max(1, self.width() - 2 * PADDING), self.height() - 8)

    def _edge(self) -> np.ndarray:
        dpr = self.devicePixelRatioF()
        w = max(1, round(self.plot.width() * dpr))
        return np.linspace(self.flame.x0, max(self.flame.x1, self.flame.x0 + w), w + 1).astype(np.int64)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, dpr, plot = QPainter(self), self.devicePixelRatioF(), self.plot
        painter.fillRect(self.rect(), theme.colour("raised"))
        if not self.flame.rows:
            write(painter, QRectF(PADDING, 8, plot.width(), 20), self.reason, "t3", 12)
            painter.end()
            return
        edge = self._edge()
        pixels = np.zeros((max(1, round(plot.height() * dpr)), len(edge) - 1), np.uint32)
        colours, named = look(dpr), []
        for k, row in enumerate(self.flame.rows):
            y = k * ROW - self._scroll
            if not -ROW < y < plot.height():
                continue
            columns = lod.columns(row, edge, dpr)
            pale = k > 1
            raster.draw(
                pixels,
                round(y * dpr),
                round((y + ROW - 1) * dpr),
                columns,
                raster.styles(columns, pale),
                colours,
                framed=True,
            )
            named.append((k, columns, y + plot.top(), pale))
        painter.drawImage(plot.topLeft(), image_of(pixels, dpr))
        painter.setFont(font(11))
        painter.setClipRect(plot)
        texts = self.scene.model.names
        for k, columns, top, pale in named:
            box = QRectF(plot.left(), top, plot.width(), ROW - 1)
            write_names(painter, self.flame.rows[k], columns, self.flame.names[k], texts, box, dpr, pale)
        painter.end()

    def _at(self, at: QPointF) -> tuple[int, int] | None:
        k = int((at.y() - self.plot.top() + self._scroll) // ROW)
        if not 0 <= k < len(self.flame.rows):
            return None
        edge = self._edge()
        npp = float(edge[-1] - edge[0]) / self.plot.width()
        place = self.flame.rows[k].near(float(edge[0]) + (at.x() - self.plot.left()) * npp, 3 * npp)
        return (k, place) if place >= 0 else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if found is not None and (span := int(self.flame.ids[found[0]][found[1]])) >= 0:
            self.chosen.emit(span)

    def wheelEvent(self, event: QWheelEvent) -> None:
        most = max(0, len(self.flame.rows) * ROW - int(self.plot.height()) + 8)
        self._scroll = min(max(self._scroll - event.angleDelta().y() // 4, 0), most)
        self.update()
        event.accept()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = self._at(QPointF(event.pos()))
            text = ""
            if found is not None:
                k, place = found
                row, n = self.flame.rows[k], int(self.flame.counts[k][place])
                name = self.scene.model.names[int(self.flame.names[k][place])][:500]
                calls = f"\n{format_count(n)} calls" if n > 1 else ""
                text = f"{name}\n{format_time(float(row.end[place] - row.start[place]))}{calls}"
            QToolTip.showText(event.globalPos(), tip(text), self)
            return True
        return super().event(event)


class FlameView(QWidget):
    """Header with the choice of order, and the rows."""

    chosen = Signal(int)

    def __init__(self, scene: Scene, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.header = PaneHeader("Flame view")
        self.order = Segments([(TIME, "Time order"), (HEAVY, "Left-heavy"), (MODULES, "Modules")])
        self.header.row.addWidget(self.order)
        self.rows = _Rows(scene)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.header)
        box.addWidget(self.rows, 1)
        self.rows.chosen.connect(self.chosen)

    def show_data(self, found: Flame, note: str) -> None:
        """`note` says what is shown, or why there is nothing."""
        self.header.note.setText(note if found.rows else "")
        self.rows.show_flame(found, note)
