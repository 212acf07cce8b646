"""What the result of a test says, in one line with a badge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.widgets.sentence import Part
from profiler.experiments.statistics import FAILS, IMPROVEMENT, REGRESSION, UNFINISHED
from profiler.rules.words import prediction
from profiler.units import format_ratio

BADGES = {"hit": ("Hit", "ok"), "miss": ("Miss", "err"), "vague": ("Vague", "warn")}
COLOURS = {IMPROVEMENT: "ok", REGRESSION: "err"}


def outcome_parts(result: Mapping[str, Any]) -> tuple[list[Part], tuple[str, str] | None]:
    """The result beside its prediction: 1.84 x [1.79, 1.90], predicted 1.7 to 2.0 x; and its badge."""
    ratio, outcome = result.get("ratio"), result.get("outcome")
    if not isinstance(ratio, Mapping):
        fails = outcome == FAILS
        reason = str(result.get("reason") or "no result")
        return [Part(reason, "err" if fails else "t2")], ("Fails", "err") if fails else None
    measured = format_ratio(float(ratio["median"]), (float(ratio["low"]), float(ratio["high"])))
    parts = [Part("measured "), Part(measured, COLOURS.get(str(outcome), "t2"), 600)]
    if (unit := result.get("unit") or "step") != "step":
        parts.append(Part(f" for a {unit}", "t2"))
    if outcome == UNFINISHED:
        parts.append(Part(", too few pairs to tell", "t2"))
    if predicted := prediction(result.get("prediction")):
        parts.append(Part(f", predicted {predicted}", "t2"))
    return parts, BADGES.get(str(result.get("score")))
