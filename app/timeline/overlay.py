"""What lies under and over the spans: grid, region, marks, the selected span and its arrows."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from app import theme
from app.timeline import frame as frames
from app.timeline.frame import Frame, counter_lines
from app.timeline.layout import CLOSED, ticks
from app.widgets.paint import text_width, write
from profiler.units import MINUS, NBSP, format_time

LINKS = 40  # arrows that are drawn; more would be a blot
FEW = 120  # samples in view up to which each is a dot


def ground(painter: QPainter, frame: Frame) -> None:
    """The grid of time, and the region behind everything."""
    plot = frame.plot
    found, _ = ticks(frame.t(plot.left()), frame.t(plot.right()), plot.width())
    grid = theme.colour("grid")
    for t in found:
        painter.fillRect(QRectF(round(frame.x(t)), 0, 1, plot.height()), grid)
    if (box := region_box(frame)) is not None:
        painter.fillRect(box, theme.colour("sel"))


def region_box(frame: Frame) -> QRectF | None:
    """The part of the region that is in view; None of none."""
    region, plot = frame.scene.region, frame.plot
    if region is None:
        return None
    x0, x1 = max(frame.x(region[0]), plot.left()), min(frame.x(region[1]), plot.right())
    return QRectF(x0, 0, x1 - x0, plot.height()) if x1 > x0 else None


def over(painter: QPainter, frame: Frame) -> None:
    painter.save()
    painter.setClipRect(frame.plot)
    _region_edges(painter, frame)
    _dots(painter, frame)
    _marks(painter, frame)
    scene = frame.scene
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if scene.selected >= 0:
        frames.outline(painter, frame, scene.selected)
    for cause, effect in scene.links[:LINKS]:
        _arrow(painter, frame, cause, effect, len(scene.links) == 1)
    painter.restore()


def _region_edges(painter: QPainter, frame: Frame) -> None:
    region = frame.scene.region
    for t in region or ():
        painter.fillRect(QRectF(round(frame.x(t)), 0, 1, frame.plot.height()), theme.colour("acc"))


def _marks(painter: QPainter, frame: Frame) -> None:
    for t in frame.scene.marks:
        painter.setPen(QPen(theme.colour("warn"), 1, Qt.PenStyle.DashLine))
        x = round(frame.x(t)) + 0.5
        painter.drawLine(QPointF(x, 0), QPointF(x, frame.plot.height()))


def _dots(painter: QPainter, frame: Frame) -> None:
    """The samples of a slow counter, and the names of the lines at their right end."""
    plot = frame.plot
    for placed in frame.scene.placed:
        if placed.strip.kind != "counter" or placed.state == CLOSED or not frame.seen(placed):
            continue
        lines, _ = counter_lines(frame.scene, placed)
        y, top = frame.y(placed), frame.tops.get(placed.strip.key)
        for k, line in enumerate(lines):
            if len(lines) > 1:
                box = QRectF(plot.left(), y + 2 + 16 * k, plot.width() - 8, 16)
                size = text_width(line.name, 11)
                painter.fillRect(
                    QRectF(box.right() - size - 2, box.top() + 2, size + 4, 13), theme.colour("raised")
                )
                write(painter, box, line.name, line.colour, 11, align=Qt.AlignmentFlag.AlignRight)
            if line.few and top is not None:
                _samples(painter, frame, line, y, placed.height, top)


def _samples(painter: QPainter, frame: Frame, line: frames.Line, y: float, height: float, top: float) -> None:
    inside = (line.x >= frame.edge[0]) & (line.x <= frame.edge[-1]) & (line.y == line.y)
    if inside.sum() > FEW:
        return
    ink = theme.colour(line.colour)
    for t, value in zip(line.x[inside].tolist(), line.y[inside].tolist()):
        at = y + height - 5 - min(value / top, 1.0) * (height - 10)
        painter.fillRect(QRectF(round(frame.x(t)) - 1, round(at) - 1, 3, 3), ink)


def _arrow(painter: QPainter, frame: Frame, cause: int, effect: int, told: bool) -> None:
    """From a launch to what it started; `told`: with the time between them."""
    one, two = frames.box_of(frame, cause), frames.box_of(frame, effect)
    if one is None or two is None:
        return
    frames.outline(painter, frame, cause)
    frames.outline(painter, frame, effect)
    down = two.top() >= one.top()
    begin = QPointF(one.center().x(), one.bottom() if down else one.top())
    end = QPointF(two.left() + min(two.width() / 2, 6), two.top() - 2 if down else two.bottom() + 2)
    bend = (end.y() - begin.y()) * 0.5
    path = QPainterPath(begin)
    path.cubicTo(begin + QPointF(0, bend), end - QPointF(0, bend), end)
    ink = theme.colour("t1")
    painter.setPen(QPen(ink, 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    side = -7 if down else 7
    painter.setBrush(ink)
    painter.drawPolygon(QPolygonF([end, end + QPointF(-4, side), end + QPointF(4, side)]))
    if told:
        _delay(painter, frame, cause, effect, end, down)


def _delay(painter: QPainter, frame: Frame, cause: int, effect: int, end: QPointF, down: bool) -> None:
    model = frame.scene.model
    delay = float(model.start[effect] - model.start[cause])
    sign = "+" if delay >= 0 else MINUS
    text = f"launch{NBSP}{sign}{NBSP}{format_time(abs(delay))}"
    size = text_width(text, 11)
    x = min(end.x() + 8, frame.plot.right() - size - 16)
    box = QRectF(x, end.y() - (26 if down else -6), size + 12, 20)
    painter.setPen(QPen(theme.colour("line2"), 1))
    painter.setBrush(theme.colour("base"))
    painter.drawRoundedRect(box, 3, 3)
    write(painter, box, text, "t1", 11, align=Qt.AlignmentFlag.AlignHCenter)


def focus(painter: QPainter, box: QRectF) -> None:
    """The ring of what the keyboard acts on."""
    painter.setPen(QPen(QColor(theme.tokens().acc), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(box.adjusted(1, 1, -1, -1))
