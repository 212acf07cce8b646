"""Prediction and measurement of a finding's remedy, on one axis. Free of Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.diagnose.data import Ratios
from app.live.verify import BADGES, COLOURS
from profiler.experiments.statistics import FAILS, UNFINISHED
from profiler.report.experiment import UNREADABLE
from profiler.rules.base import Finding, Prediction, plural
from profiler.rules.words import parity, prediction, score
from profiler.units import format_ms, format_rate, format_ratio, ms_decimals

MODELS = {"no_input_wait": "the loader's queue", "no_core_wait": "time without a core"}


def query(finding: Finding, test: Mapping[str, Any] | None, step_ms: float | None,
          what_if: Sequence[Mapping[str, Any]] | None) -> Ratios:
    """`test`: the newest of the remedy. `step_ms`: the run's own step, for absolute figures."""
    predicted = _predicted(finding.prediction, step_ms, what_if)
    if test is None:
        return Ratios(**predicted)
    try:
        return Ratios(**{**predicted, **_of_then(test, step_ms), **_measured(test)})
    except UNREADABLE:
        return Ratios(**predicted, outcome="A result in the run file cannot be read")


def _predicted(p: Prediction | None, step_ms: float | None,
               what_if: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    if p is None:
        return {}
    ideal = next((s["speedup"] for s in what_if or () if s["scenario"] == p.scenario), None)
    return {
        **_band(asdict(p), step_ms), "ideal": None if p.at_most else ideal,
        "model": "the ideal, not scored" if p.at_most else MODELS.get(p.scenario, "the steps replayed"),
    }


def _of_then(test: Mapping[str, Any], step_ms: float | None) -> dict[str, Any]:
    """The prediction that was tested: ceilings or a trace may have changed it since."""
    told = test.get("prediction")
    return _band(told, step_ms) if told else {}


def _band(told: Mapping[str, Any], step_ms: float | None) -> dict[str, Any]:
    low, high = float(told["low"]), float(told["high"])
    return {"predicted": (low, float(told["speedup"]), high),
            "predicted_text": prediction(told).partition(",")[0],
            "predicted_ms": _between(step_ms, low, high)}


def _between(step_ms: float | None, low: float, high: float) -> str:
    """26.2 to 30.8 ms."""
    if step_ms is None or low <= 0:
        return ""
    decimals = ms_decimals(step_ms * 1e6)
    fast, slow = (format_ms(step_ms / ratio * 1e6, decimals, unit=False) for ratio in (high, low))
    return f"{format_ms(step_ms / low * 1e6, decimals)}" if fast == slow else f"{fast} to {slow}\u00a0ms"


def _measured(test: Mapping[str, Any]) -> dict[str, Any]:
    ratio, outcome = test.get("ratio"), str(test.get("outcome"))
    badge = BADGES.get(str(test.get("score")))
    notes = [*map(str, test.get("notes") or ())]
    if not ratio:
        fails = outcome == FAILS
        return {"outcome": str(test.get("reason") or "no pair counts"), "tone": "err" if fails else "t2",
                "badge": ("Fails", "err") if fails else None, "notes": tuple(notes)}
    low, middle, high = (float(ratio[name]) for name in ("low", "median", "high"))
    unit = test.get("unit") or "step"
    pairs = tuple(float(pair["ratio"]) for pair in test.get("pairs") or () if pair.get("counts"))
    after = (test.get("latency_ms" if unit == "request" else "step_ms") or {}).get("b")
    count = plural(int(ratio.get("pairs") or len(pairs)), "pair")
    return {
        "measured": (low, middle, high), "measured_text": format_ratio(middle, (low, high)),
        "measured_ms": _after(after, unit),
        "pairs": pairs, "tone": COLOURS.get(outcome, "t2"), "badge": badge or _plain(outcome),
        "meaning": score(test), "rates": _rates(test.get("throughput")),
        "notes": (f"{count}, alternating", *([parity(test["loss"])] if test.get("loss") else ()), *notes),
    }


def _after(ms: float | None, unit: str) -> str:
    """28.4 ms per step, with the remedy."""
    per = "request" if unit == "request" else "step"
    return f"{format_ms(ms * 1e6, ms_decimals(ms * 1e6))} per {per}" if ms else ""


def _plain(outcome: str) -> tuple[str, str] | None:
    """A badge where nothing was predicted that could be scored."""
    words = {"improvement": ("Faster", "ok"), "regression": ("Slower", "err"),
             UNFINISHED: ("Too few pairs", "plain")}
    return words.get(outcome, ("No difference", "plain"))


def _rates(told: Mapping[str, Any] | None) -> str:
    """1 224 -> 2 254 samples/s."""
    if not told or not told.get("a") or not told.get("b"):
        return ""
    return f"{format_rate(told['a'], unit=False)} \u2192 {format_rate(told['b'], str(told['unit']))}"
