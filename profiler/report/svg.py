"""Pieces of a picture: elements, scales, axes. Everything that becomes text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from profiler.units import NBSP, format_number

LEFT, RIGHT = 64, 120  # gutters
HEAD = 6
APART = 13.0  # px between names beside lines


def tag(name: str, *children: str, **attributes: Any) -> str:
    """An element. Attributes of None are left out, `_` stands for `-`, `cls` for class."""
    text = "".join(f' {"class" if key == "cls" else key.replace("_", "-")}="{escape(_plain(value), True)}"'
                   for key, value in attributes.items() if value is not None)
    return f"<{name}{text}>{''.join(children)}</{name}>" if children else f"<{name}{text}/>"


def label(x: float, y: float, text: str, **attributes: Any) -> str:
    """A text at a point."""
    return tag("text", escape(text), x=x, y=y, **attributes)


def _plain(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Scale:
    """Values in [v0, v1] to pixels in [p0, p1]."""

    v0: float
    v1: float
    p0: float
    p1: float

    def __call__(self, value: float) -> float:
        span = self.v1 - self.v0
        return self.p0 + (self.p1 - self.p0) * ((value - self.v0) / span if span else 0.0)


def ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round values in [low, high]: two at least, and at most `most` + 1 where that leaves two."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most > 64:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return values if len(values) > 1 else ticks(low, high, 2 * most)


def top_of(value: float) -> float:
    """A round number at or above `value`: where an axis from 0 ends."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if m * power >= value * (1 - 1e-9))


def decimals_of(steps: Sequence[float]) -> int:
    """Decimals that tell the ticks apart."""
    gap = min((b - a for a, b in zip(steps, steps[1:])), default=1.0)
    return max(0, -math.floor(math.log10(gap) + 1e-9)) if gap > 0 else 0


@dataclass(frozen=True)
class Frame:
    """A plot with its gutters. `x` is in seconds since the run's start."""

    width: float
    height: float
    x: Scale
    y: Scale

    @classmethod
    def of(cls, width: float, height: float, x1: float, y0: float, y1: float) -> Frame:
        return cls(width, height, Scale(0.0, x1, LEFT, width - RIGHT), Scale(y0, y1, height, HEAD))

    def grid(self, unit: str = "") -> str:
        """Horizontal lines with their values, three to five; the unit stands once, at the highest."""
        values = ticks(self.y.v0, self.y.v1, 3)
        decimals = decimals_of(values)
        parts = []
        for value in values:
            y = self.y(value)
            zero = value == 0
            parts.append(tag("line", x1=LEFT, x2=self.width - RIGHT, y1=y, y2=y,
                             cls="zero" if zero else "grid"))
            text = format_number(value, decimals)
            if unit and value == values[-1]:
                text += f"{NBSP}{unit}"
            parts.append(label(LEFT - 8, y + 4, text, cls="axis", text_anchor="end"))
        return "".join(parts)

    def times(self) -> str:
        """The axis of time below the plot."""
        values = ticks(0.0, self.x.v1, 6)
        decimals = decimals_of(values)
        return "".join(label(self.x(value), self.height + 16, f"{format_number(value, decimals)}{NBSP}s",
                             cls="axis", text_anchor="middle") for value in values)


def names(lines: Sequence[tuple[float, str, str, str]], x: float, low: float, high: float) -> str:
    """Names beside the ends of lines: (y, css class, name, value). Those that collide move apart."""
    ordered, at, heights = sorted(lines), low, []
    for y, *_ in ordered:
        heights.append(max(y, at))
        at = heights[-1] + APART
    over = max(0.0, heights[-1] - high) if heights else 0.0
    return "".join(tag("text", tag("tspan", escape(name), cls=cls),
                       tag("tspan", escape(f" {value}"), cls="value"), x=x, y=height - over + 4, cls="name")
                   for height, (_, cls, name, value) in zip(heights, ordered))


def svg(width: float, height: float, title: str, *children: str) -> str:
    """A picture that scales with the page. `title` is read out in its place."""
    return tag("svg", tag("title", escape(title)), *children, viewBox=f"0 0 {width:g} {height:g}",
               role="img", xmlns="http://www.w3.org/2000/svg")
