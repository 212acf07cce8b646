"""What a stored measurement of ceilings says: the stages alone beside the run, as bars and in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from profiler.report.step_chart import piece
from profiler.report.svg import Scale, decimals_of, label, svg, tag, ticks
from profiler.rules.base import plural
from profiler.units import format_ms, format_number, format_rate, ms_decimals

WIDTH, LEFT, RIGHT = 900.0, 250.0, 80.0
ROW, BAR = 26.0, 16.0  # px
# The stage whose colour a bar wears, by what was alone; the run itself is grey.
COLOURS = {"loader": "data", "loader_advised": "data", "cached": "forward", "device": "forward",
           "forward": "forward"}
Level = Mapping[str, float]


def ceilings(told: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement of ceilings, from the JSON form of its result."""
    stages, unit = told["stages"], str(told["unit"])
    count = f"median of {told['repeats']}, and range" if told["repeats"] > 1 else "one recording each"
    return {
        "text": told["leaning"]["text"], "note": count, "picture": _bars(stages), "unit": unit,
        "rows": [_row(stage, _decimals(stages)) for stage in stages],
        "more": [f"Not measured: {item['title']}: {item['why']}" for item in told["absent"]]
        + [f"Left out: round {item['round']}, {item['title']}: {', '.join(item['why'])}"
           for item in told["left_out"]] + list(told["notes"]),
    }


def _title(stage: Mapping[str, Any]) -> str:
    workers = stage["loader"].get("num_workers")
    title = str(stage["title"])
    loader = stage["name"].startswith("loader") and isinstance(workers, int)
    return f"{title} ({plural(workers, 'worker')})" if loader else title


def _row(stage: Mapping[str, Any], decimals: int) -> tuple[str, ...]:
    """(title, ms, their range, rate, their range)."""
    rate = stage["throughput"]

    def ms(value: float) -> str:
        return format_ms(value * 1e6, decimals, unit=False)

    def per_second(value: float) -> str:
        return format_rate(value, unit=False)

    def ends(level: Level, write: Callable[[float], str]) -> str:
        return f"{write(level['low'])} to {write(level['high'])}" if stage["runs"] > 1 else ""

    step = stage["step_ms"]
    return (_title(stage), ms(step["median"]), ends(step, ms),
            per_second(rate["median"]) if rate else "", ends(rate, per_second) if rate else "")


def _decimals(stages: Sequence[Mapping[str, Any]]) -> int:
    return ms_decimals(1e6 * min((stage["step_ms"]["median"] for stage in stages), default=0.0))


def _bars(stages: Sequence[Mapping[str, Any]]) -> str:
    """A bar for each stage from 0, its range as a whisker; a line where the run itself is."""
    longest = max((stage["step_ms"]["high"] for stage in stages), default=0.0)
    if longest <= 0:
        return ""
    x, decimals, bottom = Scale(0.0, longest, LEFT, WIDTH - RIGHT), _decimals(stages), ROW * len(stages) + 4
    steps = ticks(0.0, longest, 5)
    parts = []
    for value in steps:
        parts.append(tag("line", x1=x(value), x2=x(value), y1=0, y2=bottom, cls="grid" if value else "zero"))
        text = format_number(value, decimals_of(steps)) + ("\u00a0ms" if value == steps[-1] else "")
        parts.append(label(x(value), bottom + 16, text, cls="axis", text_anchor="middle"))
    for k, stage in enumerate(stages):
        step, y = stage["step_ms"], ROW * k + (ROW - BAR) / 2 + 2
        text = format_ms(step["median"] * 1e6, decimals)
        parts.append(label(0, y + 12, _title(stage), cls="name"))
        parts.append(tag("g", tag("title", escape(f"{_title(stage)} {text}")),
                         piece(COLOURS.get(stage["name"], "other"), LEFT, y, x(step["median"]) - LEFT, BAR)))
        if stage["runs"] > 1:
            parts.append(_whisker(x(step["low"]), x(step["high"]), y + BAR / 2))
        parts.append(label(WIDTH, y + 12, text, cls="name strong", text_anchor="end"))
    for stage in stages:
        if stage["name"] == "real":
            at = x(stage["step_ms"]["median"])
            parts.append(tag("line", x1=at, x2=at, y1=0, y2=bottom, cls="level"))
    return svg(WIDTH, bottom + 22, "A step of the run and of its stages alone", *parts)


def _whisker(low: float, high: float, y: float) -> str:
    return tag("path", d=f"M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 4}v8M{high:.1f} {y - 4}v8", cls="reach")
