"""Step time over the run as stacked bars, and one step as a bar of stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from profiler.analysis.series import FloatArray, IntArray
from profiler.analysis.steps import Steps
from profiler.metrics import stage_title
from profiler.model import STAGES
from profiler.report.svg import LEFT, RIGHT, Frame, label, names, svg, tag, top_of
from profiler.units import format_ms, format_share, ms_decimals

WIDTH, HEIGHT = 900.0, 180.0
BAR = 8.0  # px; steps that are narrower share a bar
HATCHED, EDGED = 8.0, 3.0  # px below which a piece has no hatch, no edge
TALL = 2.0  # times the 95th percentile: where a bar is cut


def stage_bar(stages_ms: Mapping[str, float], width: float = WIDTH) -> str:
    """The mean step, its stages side by side, to scale. Names where they fit."""
    pieces = [(stage, stage_title(stage), stages_ms[stage]) for stage in STAGES if stage in stages_ms]
    return bar(pieces, "One step by stage", width)


def bar(pieces: Sequence[tuple[str, str, float]], of: str, width: float = WIDTH) -> str:
    """Pieces (stage whose colour it wears, title, ms) side by side, to scale. Names where they fit."""
    total, x, height = sum(value for _, _, value in pieces), 0.0, 32.0
    if total <= 0:
        return ""
    decimals = ms_decimals(total * 1e6)
    parts = []
    for stage, name, took in pieces:
        wide = width * took / total
        if wide <= 0:
            continue
        value = format_ms(took * 1e6, decimals)
        title = f"{name} {value}, {format_share(took / total)}"
        text = f"{name} {value}"
        plate = 6.6 * len(text) + 12
        inner = [piece(stage, x, 0.0, wide, height)]
        if plate < wide:
            inner.append(tag("rect", x=x + 6, y=8, width=plate, height=16, cls=f"fill-{stage}"))
            inner.append(label(x + 6 + plate / 2, 20, text, cls=f"ink-{stage}", text_anchor="middle"))
        parts.append(tag("g", tag("title", escape(title)), *inner))
        x += wide
    return svg(width, height, of, *parts)


def piece(stage: str, x: float, y: float, width: float, height: float) -> str:
    """A surface of a stage: fill, hatch, edge."""
    size = min(width, height)
    parts = [tag("rect", x=x, y=y, width=width, height=height, cls=f"fill-{stage}")]
    if size >= EDGED and stage not in ("forward", "other") and max(width, height) >= HATCHED:
        parts.append(tag("rect", x=x, y=y, width=width, height=height, fill=f"url(#hatch-{stage})"))
    if size >= EDGED:
        parts.append(tag("rect", x=x + 0.5, y=y + 0.5, width=width - 1, height=max(0.0, height - 1),
                         cls=f"edge edge-{stage}"))
    return "".join(parts)


Bins = tuple[FloatArray, FloatArray, IntArray, FloatArray]


def bins(steps: Steps, start_ns: int, end_ns: int, columns: int) -> Bins:
    """Which step stands for which stretch of time: (left s, right s, step, slowest ns).

    With at most `columns` steps each is its own bar, from its start to its end. Else
    the run is divided into so many columns of equal length, and the median step of
    each stands for it; columns in which no step ended are left out.
    """
    n = len(steps)
    wall = steps.wall.astype(np.float64)
    if n <= columns:
        return ((steps.t0_ns - start_ns) / 1e9, (steps.t1_ns - start_ns) / 1e9, np.arange(n), wall)
    length = max(1, end_ns - start_ns) / columns
    column = np.clip(((steps.t1_ns - start_ns) / length).astype(np.int64), 0, columns - 1)
    chosen, slowest, where = [], [], []
    for c in np.unique(column):
        members = np.flatnonzero(column == c)
        order = members[np.argsort(wall[members], kind="stable")]
        chosen.append(order[(len(order) - 1) // 2])
        slowest.append(wall[order[-1]])
        where.append(c)
    left = np.array(where) * length / 1e9
    return left, left + length / 1e9, np.array(chosen, np.int64), np.array(slowest)


def step_chart(steps: Steps, start_ns: int, end_ns: int) -> tuple[str, str]:
    """(picture, what it shows in words) of the training steps. Both empty without steps."""
    if not len(steps):
        return "", ""
    left, right, chosen, slowest = bins(steps, start_ns, end_ns, int((WIDTH - LEFT - RIGHT) // BAR))
    heights = np.stack([steps.stages[stage][chosen] for stage in STAGES]).astype(np.float64) / 1e6
    sums = heights.sum(axis=0)
    highest = max(float(sums.max()), float(slowest.max()) / 1e6)
    top = top_of(1.05 * min(highest, TALL * float(np.percentile(sums, 95))))
    frame = Frame.of(WIDTH, HEIGHT, max((end_ns - start_ns) / 1e9, 1e-3), 0.0, top)
    parts = [frame.grid("ms")]
    for k in range(len(chosen)):
        parts.append(_bar(frame, float(left[k]), float(right[k]), heights[:, k], float(slowest[k]) / 1e6))
    parts += [frame.times(), _names(frame, heights)]
    each = len(chosen) == len(steps)
    note = "ms, each step" if each else "ms, the median step of each stretch, whisker to the slowest"
    if highest > top:
        note += f"; cut at the top, the slowest took {format_ms(highest * 1e6)}"
    return svg(WIDTH, HEIGHT + 24, f"Step time: {note}", *parts), note


def _bar(frame: Frame, left: float, right: float, heights: FloatArray, slowest: float) -> str:
    x0, x1 = frame.x(left), frame.x(right)
    gap = 1.0 if x1 - x0 > 4 else 0.0
    width, parts, low = max(0.75, x1 - x0 - gap), [], 0.0
    for stage, value in zip(STAGES, heights):
        high = min(low + float(value), frame.y.v1)
        if high > low:
            y = frame.y(high)
            parts.append(_thin(stage, x0, y, width, frame.y(low) - y))
        low += float(value)
    if low > frame.y.v1:
        parts.append(tag("path", d=f"M{x0:.1f} {frame.y.p1 - 1:.1f}h{width:.1f}", cls="cut"))
    elif slowest > low * 1.02:
        x, y = x0 + width / 2, frame.y(min(slowest, frame.y.v1))
        parts.append(tag("line", x1=x, x2=x, y1=frame.y(low), y2=y, cls="whisker"))
    return "".join(parts)


def _thin(stage: str, x: float, y: float, width: float, height: float) -> str:
    """A surface in a chart of many: no edge of its own, the hatch runs on into its neighbours."""
    box = {"x": x, "y": y, "width": width, "height": height}
    text = tag("rect", **box, cls=f"fill-{stage}")
    if height >= 4 and stage not in ("forward", "other"):
        text += tag("rect", **box, fill=f"url(#hatch-{stage})")
    return text


def _names(frame: Frame, heights: FloatArray) -> str:
    """Stages beside the chart, at the height of their middle in the median bar, with their median."""
    median, low, lines = np.median(heights, axis=1), 0.0, []
    total = float(median.sum())
    for stage, value in zip(STAGES, median):
        if total and value >= 0.02 * total:
            y = frame.y(min(low + float(value) / 2, frame.y.v1))
            lines.append((y, f"text-{stage}", stage_title(stage),
                          format_ms(float(value) * 1e6, ms_decimals(total * 1e6), unit=False)))
        low += float(value)
    return names(lines, WIDTH - RIGHT + 10, 10.0, HEIGHT)


def stage_swatch(stage: str) -> str:
    """A square of a stage for tables and headings."""
    return tag("svg", piece(stage, 0.0, 0.0, 12.0, 12.0), cls="swatch", viewBox="0 0 12 12",
               xmlns="http://www.w3.org/2000/svg", aria_hidden="true")


def flag(stage: str) -> str:
    """The tall flag beside a verdict."""
    return tag("svg", piece(stage, 0.0, 0.0, 10.0, 52.0), cls="flag", viewBox="0 0 10 52",
               xmlns="http://www.w3.org/2000/svg", aria_hidden="true")
