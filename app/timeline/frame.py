"""One frame of the lanes: rows and lines as pixels, then names, gaps, arrows over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app import theme
from app.live.series import nice
from app.timeline import lod, raster
from app.timeline.layout import CLOSED, Placed
from app.timeline.look import fill_of, image_of, look, pixel
from app.timeline.recorded import Line
from app.timeline.scene import Scene, short_name
from app.timeline.spans import COLOURS, Codes, Ints, Row
from app.widgets.paint import font, text_width, write
from profiler.rules.words import CLASS_STAGES, class_title
from profiler.units import NBSP, format_ms, format_time

NAMED = 24  # px from which a span may have its name
GAP_NAMED = 64
STAGE_OF_GAP = {class_title(name): stage for name, stage in CLASS_STAGES.items()}


@dataclass(frozen=True, eq=False)
class Frame:
    """Where things lie: the plot in px of the widget, the times of the edges of device pixels."""

    scene: Scene
    plot: QRectF
    edge: Ints
    dpr: float
    scroll: int
    tops: dict[str, float] = field(default_factory=dict)  # of the axes of counters that were drawn

    @property
    def ns_per_px(self) -> float:
        return float(self.edge[-1] - self.edge[0]) / self.plot.width()

    def x(self, t: float) -> float:
        return self.plot.left() + (t - float(self.edge[0])) / self.ns_per_px

    def t(self, x: float) -> float:
        return float(self.edge[0]) + (x - self.plot.left()) * self.ns_per_px

    def y(self, placed: Placed) -> int:
        return placed.y if placed.pinned else placed.y - self.scroll

    def seen(self, placed: Placed) -> bool:
        y = self.y(placed)
        above = 0 if placed.pinned else self.scene.top
        return y < self.plot.height() and y + placed.height > above


def make(scene: Scene, plot: QRectF, x0: float, x1: float, dpr: float, scroll: int) -> Frame:
    """A frame of `plot` that shows x0 to x1, ns; moved by less than a pixel onto the grid of pixels."""
    width = max(1, round(plot.width() * dpr))
    edge = lod.edges(x0, (x1 - x0) / width, width)
    return Frame(scene, plot, edge, dpr, scroll)


class Painter:
    """Draws a frame. Names are collected while rows are drawn, and written after them."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.scene = frame, frame.scene
        self.look = look(frame.dpr)
        self._names: list[tuple[int, lod.Columns, int, int, bool]] = []

    def draw(self, painter: QPainter) -> None:
        frame, dpr = self.frame, self.frame.dpr
        height, width = max(1, round(frame.plot.height() * dpr)), len(frame.edge) - 1
        pixels = np.zeros((height, width), np.uint32)
        free = [p for p in self.scene.placed if not p.pinned and frame.seen(p)]
        pinned = [p for p in self.scene.placed if p.pinned]
        painter.save()
        painter.setClipRect(frame.plot)
        for group in (free, pinned):
            if group is pinned and pinned:
                pixels[: round(self.scene.top * dpr)] = 0
            for placed in group:
                self._lane(pixels, placed)
        painter.drawImage(frame.plot.topLeft(), image_of(pixels, dpr))
        painter.setFont(font(11))
        model = self.scene.model
        for number, columns, y, height, pale in self._names:
            box = QRectF(frame.plot.left(), y, frame.plot.width(), height)
            codes = model.name[model.edges[number] : model.edges[number + 1]]
            write_names(painter, model.rows[number], columns, codes, model.names, box, dpr, pale)
        for placed in (*free, *pinned):
            self._gaps(painter, placed)
        painter.restore()

    def _lane(self, pixels: raster.Pixels, placed: Placed) -> None:
        if placed.strip.kind == "counter":
            self._counter(pixels, placed)
            return
        frame, dpr = self.frame, self.frame.dpr
        move = frame.y(placed) - placed.y
        for k, (number, y, height) in enumerate(placed.rows()):
            top, bottom = round((y + move) * dpr), round((y + move + height) * dpr)
            if bottom <= 0 or top >= len(pixels):
                continue
            pale = placed.strip.kind in ("steps", "python") or (k > 0 and placed.strip.kind == "host")
            columns = lod.columns(self.scene.model.rows[number], frame.edge, dpr)
            style = raster.styles(columns, pale, self.scene.lit(number, frame.edge))
            raster.draw(pixels, top, bottom, columns, style, self.look, framed=pale)
            if height >= 12 and len(columns.boxes):
                self._names.append((number, columns, y + move, height, pale or self.scene.searching))

    def _gaps(self, painter: QPainter, placed: Placed) -> None:
        """What the device waited for, where there is room to say it."""
        scene, frame, gaps = self.scene, self.frame, self.scene.model.gaps
        if placed.strip.kind != "stream" or placed.state == CLOSED or not len(gaps["row"]):
            return
        own = gaps["row"] == placed.strip.first
        start, end, name = gaps["start"][own], gaps["end"][own], gaps["name"][own]
        keep = (end - start >= GAP_NAMED * frame.ns_per_px) & (end > frame.edge[0]) & (start < frame.edge[-1])
        _, y, height = next(iter(placed.rows()))
        y += frame.y(placed) - placed.y
        for t0, t1, code in zip(start[keep].tolist(), end[keep].tolist(), name[keep].tolist()):
            x0, x1 = max(frame.x(t0), frame.plot.left()) + 3, min(frame.x(t1), frame.plot.right()) - 3
            text = f"{scene.model.names[code]} {format_ms(t1 - t0, 1 if t1 - t0 >= 1e6 else 2)}"
            size = text_width(text, 11)
            if size > x1 - x0 - 4:
                continue
            stage = STAGE_OF_GAP.get(scene.model.names[code])
            colour = theme.tokens().stages[stage].edge if stage else theme.tokens().t3
            write(
                painter,
                QRectF(x0, y - 1, x1 - x0, height - 5),
                text,
                colour,
                align=Qt.AlignmentFlag.AlignHCenter,
            )
            foot = round(y + height - 4)
            painter.fillRect(QRectF(x0, foot, x1 - x0, 1), QColor(colour))
            for x in (x0, x1 - 1):
                painter.fillRect(QRectF(x, foot - 3, 1, 7), QColor(colour))

    def _counter(self, pixels: raster.Pixels, placed: Placed) -> None:
        lines, top = counter_lines(self.scene, placed)
        frame, dpr = self.frame, self.frame.dpr
        levels = [raster.levels(line.x, line.y, frame.edge) for line in lines]
        highest = top if top is not None else counter_top(levels)
        frame.tops[placed.strip.key] = highest
        y = frame.y(placed)
        y0, y1 = round((y + 5) * dpr), round((y + placed.height - 4) * dpr)
        tokens = theme.tokens()
        for k, (line, (low, high)) in enumerate(zip(lines, levels)):
            ink = QColor(getattr(tokens, line.colour))
            fill = QColor(ink)
            fill.setAlphaF(0.16 if tokens.dark else 0.12)
            last = k == len(lines) - 1
            raster.draw_line(
                pixels,
                y0,
                y1,
                low,
                high,
                0.0,
                highest,
                pixel(ink),
                pixel(fill) if last else 0,
                max(1, round(dpr)),
            )


def write_names(
    painter: QPainter,
    row: Row,
    columns: lod.Columns,
    codes: Codes,
    texts: Sequence[str],
    box: QRectF,
    dpr: float,
    pale: bool,
) -> None:
    """The name on each span that has room for it, with its length where there is more.

    `codes`: of each span of the row, its name's place in `texts`, or -1. `box`: where its columns are, px.
    """
    w = len(columns.colour)
    a, b = np.maximum(columns.boxes[:, 1], 0), np.minimum(columns.boxes[:, 2] + 1, w)
    tokens = theme.tokens()
    for k in np.flatnonzero((b - a) >= NAMED * dpr).tolist():
        room = (b[k] - a[k]) / dpr - 8
        place = int(columns.boxes[k, 0])
        text = short_name(texts[codes[place]]) if codes[place] >= 0 else ""
        size = text_width(text, 11)
        if size > room:
            continue
        stage = COLOURS[int(row.palette[row.code[place]])]
        length = f"{NBSP}{NBSP}{format_time(float(row.end[place] - row.start[place]))}"
        x = box.left() + a[k] / dpr + 4
        if size + text_width(length, 11) <= room:
            text, size = text + length, size + text_width(length, 11)
        if not pale:
            painter.fillRect(QRectF(x - 2, box.top() + 1, size + 4, box.height() - 2), fill_of(stage, False))
        painter.setPen(QColor(tokens.t1 if pale else tokens.stages[stage].ink))
        painter.drawText(QPointF(x, box.top() + box.height() / 2 + 4), text)


def counter_top(levels: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """A round value above all in view."""
    highest = max((float(np.nanmax(high)) for _, high in levels if np.isfinite(high).any()), default=0.0)
    return nice(highest) if highest > 0 else 1.0


def counter_lines(scene: Scene, placed: Placed) -> tuple[tuple[Line, ...], float | None]:
    """The lines of a counter, in the unit that its note names; and the top of its axis."""
    if placed.strip.index >= 0:
        return (Line(placed.strip.title, "m1", *scene.model.points[placed.strip.index]),), None
    row = scene.counter(placed.strip.key)
    return (row.lines, row.top) if row is not None else ((), None)


def outline(painter: QPainter, frame: Frame, span: int, colour: str = "t1") -> QRectF | None:
    """A frame around a span that is drawn; where it lies, None where it is not drawn."""
    box = box_of(frame, span)
    if box is None or box.right() < frame.plot.left() or box.left() > frame.plot.right():
        return box
    painter.setPen(QPen(theme.colour(colour), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(box.adjusted(-1, -1, 1, 1))
    return box


def box_of(frame: Frame, span: int) -> QRectF | None:
    """Where a span lies, px of the widget; None where its row is not drawn."""
    model = frame.scene.model
    where = frame.scene.placed_of(model.row_of(span)) if 0 <= span < len(model) else None
    if where is None:
        return None
    placed, y, height = where
    x0, x1 = frame.x(float(model.start[span])), frame.x(float(model.end[span]))
    return QRectF(x0, y + frame.y(placed) - placed.y, max(2.0, x1 - x0), height)
