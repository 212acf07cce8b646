"""Prediction and measurement of an experiment on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from profiler.report.svg import Scale, decimals_of, label, svg, tag, ticks
from profiler.rules.base import plural
from profiler.units import TIMES, format_number, format_prediction, format_ratio

WIDTH, LEFT, RIGHT = 900.0, 110.0, 230.0
NO_CHANGE = (0.98, 1.02)


def ratio_chart(experiment: Mapping[str, Any]) -> str:
    """Empty when nothing was measured. Predicted: a box. Measured: a diamond with whiskers."""
    ratio, predicted = experiment.get("ratio"), experiment.get("prediction")
    if not ratio:
        return ""
    pairs = [pair for pair in experiment.get("pairs") or () if pair.get("counts")]
    values = [1.0, *NO_CHANGE, ratio["low"], ratio["high"], *(pair["ratio"] for pair in pairs)]
    if predicted:
        values += [predicted["low"], predicted["high"]]
    pad = 0.06 * (max(values) - min(values))
    x = Scale(min(values) - pad, max(values) + pad, LEFT, WIDTH - RIGHT)
    parts, bottom = [], 74.0
    steps = ticks(x.v0, x.v1, 6)
    for value in steps:
        parts.append(tag("line", x1=x(value), x2=x(value), y1=4, y2=bottom, cls="grid"))
        text = f"{format_number(value, decimals_of(steps))}\u00a0{TIMES}"
        parts.append(label(x(value), bottom + 16, text, cls="axis", text_anchor="middle"))
    left, right = map(x, NO_CHANGE)
    zone = tag("rect", x=left, width=right - left, y=4, height=bottom - 4, cls="zone")
    parts.append(tag("g", tag("title", "no difference"), zone))
    if predicted:
        parts += _predicted(x, predicted)
    parts += _measured(x, ratio, str(experiment.get("outcome")),
                       str(experiment.get("score")) if predicted else "")
    parts.append(label(0, 68, plural(len(pairs), "pair"), cls="axis"))
    parts += [tag("circle", tag("title", escape(format_ratio(pair["ratio"]))), cx=x(pair["ratio"]), cy=64,
                  r=3, cls="pair") for pair in pairs]
    return svg(WIDTH, bottom + 22, "Prediction and measurement", *parts)


def _predicted(x: Scale, predicted: Mapping[str, Any]) -> list[str]:
    low, high, middle = predicted["low"], predicted["high"], predicted["speedup"]
    text = format_prediction(low, high)
    if predicted.get("at_most"):
        text = f"at most {format_prediction(high, high)}"
    return [
        label(0, 22, "Predicted", cls="name"),
        tag("rect", x=x(low), width=max(1.0, x(high) - x(low)), y=10, height=16, cls="predicted"),
        tag("line", x1=x(middle), x2=x(middle), y1=10, y2=26, cls="predicted-middle"),
        label(WIDTH - RIGHT + 16, 22, text, cls="name"),
    ]


def _measured(x: Scale, ratio: Mapping[str, Any], outcome: str, score: str) -> list[str]:
    cls = {"improvement": "better", "regression": "worse"}.get(outcome, "open")
    low, middle, high, y = x(ratio["low"]), x(ratio["median"]), x(ratio["high"]), 44.0
    text = format_ratio(ratio["median"], (ratio["low"], ratio["high"]))
    return [
        label(0, y + 4, "Measured", cls="name"),
        tag("path", d=f"M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10",
            cls=f"whiskers {cls}"),
        tag("path", d=f"M{middle:.1f} {y - 6}l6 6l-6 6l-6 -6z", cls=f"diamond {cls}"),
        label(WIDTH - RIGHT + 16, y + 4, f"{text}, {score}" if score else text, cls="name strong"),
    ]
