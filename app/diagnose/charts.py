"""The charts of Diagnose: prediction and measurement, one step in lanes, ceilings."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF

from app import theme
from app.diagnose.data import CeilingsData, Ratios, StepData
from app.diagnose.plot import PAD, Plot, beside, piece, write_on
from app.widgets.paint import LINE, text_width, write
from profiler.rules.base import plural

SAME = (0.98, 1.02)  # ratios that are no difference
ENDS = 0.06  # of the range of ratios, free at both ends
FREE = 1.15  # times the longest bar: room for its value


class RatioChart(Plot):
    """Predicted is a box that goes on as a band, measured a diamond with whiskers, the pairs dots below."""

    def __init__(self) -> None:
        super().__init__("Prediction and measurement")
        self.data = Ratios()
        self.setFixedHeight(132)

    def show_data(self, data: Ratios) -> None:
        self.data = data
        values = [1.0, *SAME, *(data.predicted or ()), *(data.measured or ()), *data.pairs]
        values += [data.ideal] if data.ideal is not None else []
        pad = ENDS * (max(values) - min(values))
        self.low, self.high = min(values) - pad, max(values) + pad
        self.setAccessibleDescription(f"predicted {data.predicted_text}, measured {data.measured_text}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, data, area = QPainter(self), self.data, self.plot()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left, right = map(self.to_x, SAME)
        painter.fillRect(QRectF(left, area.top() - 8, right - left, area.height() + 8), theme.colour("hover"))
        self.axis(painter, "\u00d7", zero=1.0)
        self._names(painter)
        if data.predicted is not None:
            self._predicted(painter, area)
        if data.ideal is not None:
            x = self.dashed(painter, data.ideal, "t3")
            text = f"ideal {data.ideal:.2f}\u00a0\u00d7"
            room = x + 6 + text_width(text, 11) < self.width() - 4
            left = x + 6 if room else x - 6 - text_width(text, 11)
            write(painter, QRectF(left, area.center().y() - LINE / 2 - 2, 120, LINE), text, "t3")
        if data.measured is not None:
            self._measured(painter, area)
        elif data.outcome:
            write(painter, QRectF(area.left(), 60, area.width(), LINE), data.outcome, data.tone, 12)
        painter.end()

    def _names(self, painter: QPainter) -> None:
        data = self.data
        pairs = f"{plural(len(data.pairs), 'pair')}, alternating"
        measured = pairs if data.measured is not None else "" if data.outcome else "not verified"
        for y, name, note in ((10, "Predicted", data.model if data.predicted else "nothing"),
                              (58, "Measured", measured)):
            write(painter, QRectF(PAD, y, 140, LINE), name, "t1", 12, 600)
            write(painter, QRectF(PAD, y + LINE, 140, LINE), note, "t3")

    def _predicted(self, painter: QPainter, area: QRectF) -> None:
        assert self.data.predicted is not None
        low, middle, high = map(self.to_x, self.data.predicted)
        tint = QColor(theme.colour("acc"))
        tint.setAlphaF(0.12)
        painter.fillRect(QRectF(low, 36, max(2.0, high - low), area.bottom() - 36), tint)
        tint.setAlphaF(0.32)
        box = QRectF(round(low) + 0.5, 14.5, max(2.0, round(high - low)), 18)
        painter.fillRect(box, tint)
        painter.setPen(QPen(theme.colour("acc"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box)
        painter.fillRect(QRectF(round(middle) - 1, 14, 2, 19), theme.colour("acc"))
        parts = [(self.data.predicted_text, "t1", 12, 600), (self.data.predicted_ms, "t3", 11, 400)]
        beside(painter, area, low, high, 24, parts)

    def _measured(self, painter: QPainter, area: QRectF) -> None:
        assert self.data.measured is not None
        low, middle, high = map(self.to_x, self.data.measured)
        y, colour = 72.0, theme.colour(self.data.tone)
        painter.setPen(QPen(colour, 2))
        painter.drawLine(QPointF(low, y), QPointF(high, y))
        for end in (low, high):
            painter.drawLine(QPointF(end, y - 6), QPointF(end, y + 6))
        painter.setBrush(colour)
        painter.setPen(Qt.PenStyle.NoPen)
        corners = ((0, -6), (6, 0), (0, 6), (-6, 0))
        painter.drawPolygon(QPolygonF([QPointF(middle + dx, y + dy) for dx, dy in corners]))
        painter.setBrush(theme.colour("raised"))
        painter.setPen(QPen(theme.colour("t2"), 1.2))
        for pair in self.data.pairs:
            painter.drawEllipse(QPointF(self.to_x(pair), y + 16), 3, 3)
        parts = [(self.data.measured_text, "t1", 12, 600), (self.data.measured_ms, "t3", 11, 400)]
        band = self.to_x(self.data.predicted[0]) if self.data.predicted else low
        beside(painter, area, min(low, band), high, y, parts)


class StepChart(Plot):
    """Lanes of one step: pieces of stages in ms from its start."""

    LANE, BAR = 36, 22

    def __init__(self) -> None:
        super().__init__("One step")
        self.data = StepData()
        self.show_data(self.data)

    def show_data(self, data: StepData) -> None:
        self.data = data
        ends = [span.t1 for lane in data.lanes for span in lane.spans]
        self.low, self.high = 0.0, 1.04 * max([data.end, *ends], default=1.0) or 1.0
        idle = 12 if data.idle is not None else 0
        self.setFixedHeight(34 + self.LANE * max(1, len(data.lanes)) + idle)
        said = (f"{lane.name}: {', '.join(span.text for span in lane.spans)}" for lane in data.lanes)
        self.setAccessibleDescription("; ".join(said))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, data = QPainter(self), self.data
        area, dpr = self.plot(), self.devicePixelRatioF()
        self.hints = []
        self.axis(painter, "ms")
        for k, lane in enumerate(data.lanes):
            y = area.top() + self.LANE * k
            write(painter, QRectF(PAD, y - 3, 136, LINE), lane.name, "t1", 12)
            write(painter, QRectF(PAD, y + LINE - 4, 136, LINE), lane.note, "t3")
            for span in lane.spans:
                x0, x1 = self.to_x(span.t0), self.to_x(span.t1)
                box = QRectF(round(x0), y, max(1.0, round(x1) - round(x0)), self.BAR)
                piece(painter, box, span.stage, dpr)
                self.hints.append((box, span.text))
                if span.stage:
                    short = span.text.rpartition(" ")[0] if "\u00a0" in span.text else ""
                    write_on(painter, box, span.stage, [span.text, *([short] if short else [])])
                else:
                    beside(painter, area, x0, x1 - 4, y + self.BAR / 2, [(span.text, "t2", 11, 400)])
        if data.end > 0 and data.lanes:
            self.dashed(painter, data.end, "t2")
        if data.idle is not None:
            self._idle(painter, area)
        painter.end()

    def _idle(self, painter: QPainter, area: QRectF) -> None:
        assert self.data.idle is not None
        t0, t1, text = self.data.idle
        y = area.top() + self.LANE * self._device_lane() + self.BAR + 3
        painter.fillRect(QRectF(self.to_x(t0), y, self.to_x(t1) - self.to_x(t0), 2),
                         QColor(theme.tokens().stages["sync"].edge))
        wide = text_width(text, 11, 500)
        if self.to_x(t1) - self.to_x(t0) >= wide + 8:
            box = QRectF(self.to_x(t1) - wide - 4, y - self.BAR, wide + 4, LINE)
            write(painter, box, text, theme.tokens().stages["sync"].edge, 11, 500)

    def _device_lane(self) -> int:
        return next((k for k, lane in enumerate(self.data.lanes) if lane.name == "Device"), 0)


class CeilingsChart(Plot):
    """A bar for each part alone, with its range; lines where the run is and where its best test came to."""

    ROW, BAR = 30, 18

    def __init__(self) -> None:
        super().__init__("Ceilings", left=196, right=140)
        self.data = CeilingsData()

    def show_data(self, data: CeilingsData) -> None:
        self.data = data
        levels = [row.high for row in data.rows] + [v for v in (data.run_ms, data.verified_ms) if v]
        self.low, self.high = 0.0, FREE * max(levels, default=1.0)
        self.setFixedHeight(34 + self.ROW * max(1, len(data.rows)) + LINE)
        self.setAccessibleDescription("; ".join(f"{row.title} {row.text} ms" for row in data.rows))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, data = QPainter(self), self.data
        area, dpr = self.plot(), self.devicePixelRatioF()
        self.axis(painter, "ms")
        for k, row in enumerate(data.rows):
            y = area.top() + self.ROW * k
            write(painter, QRectF(PAD, y, 168, self.BAR), row.title, "t2", 12)
            box = QRectF(area.left(), y, max(1.0, round(self.to_x(row.ms) - area.left())), self.BAR)
            piece(painter, box, row.stage, dpr)
            if row.high > row.low:
                middle = round(y + self.BAR / 2)
                ink = theme.colour("t1")
                low, high = self.to_x(row.low), self.to_x(row.high)
                painter.fillRect(QRectF(low, middle, high - low, 1), ink)
                for end in (low, high):
                    painter.fillRect(QRectF(end, middle - 4, 1, 9), ink)
        self._references(painter, area)
        for k, row in enumerate(data.rows):
            y = area.top() + self.ROW * k
            text_at = round(self.to_x(row.high)) + 6
            ground = QRectF(text_at - 3, y + 1, text_width(row.text, 12, 600) + 6, self.BAR - 2)
            painter.fillRect(ground, theme.colour("raised"))
            write(painter, QRectF(text_at, y, 80, self.BAR), row.text, "t1", 12, 600)
            rate = QRectF(area.right(), y, self.width() - area.right() - PAD, self.BAR)
            write(painter, rate, row.rate, "t2", 12, align=Qt.AlignmentFlag.AlignRight)
        painter.end()

    def _references(self, painter: QPainter, area: QRectF) -> None:
        """Their words stand under the bars, apart from each other."""
        data, y, last = self.data, area.bottom() - LINE, -1e9
        marks = [(data.verified_ms, data.verified_text, "ok"), (data.run_ms, data.run_text, "t2")]
        for value, text, colour in sorted((m for m in marks if m[0] is not None), key=lambda m: m[0] or 0):
            assert value is not None
            x, wide = self.dashed(painter, value, colour), text_width(text, 11, 500)
            left = x - wide - 4 if x - wide - 4 > last else x + 4
            write(painter, QRectF(left, y, wide, LINE), text, colour, 11, 500)
            last = left + wide
