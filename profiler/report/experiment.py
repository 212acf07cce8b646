"""What a stored test of a remedy says: prediction and measurement, and a row for each pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from profiler.report.ratio_chart import ratio_chart
from profiler.rules.words import parity, prediction, remedy, score
from profiler.units import format_ms, format_rate, format_ratio, ms_decimals

Told = Mapping[str, Any]
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError)


def read(make: Callable[[Told], dict[str, Any]], results: Sequence[Told]) -> list[dict[str, Any]]:
    """What is shown of each; a result that is damaged, or of another version, is shown as such."""
    found = []
    for told in results:
        try:
            found.append({"unreadable": "", **make(told)})
        except UNREADABLE as error:
            found.append({"unreadable": f"{type(error).__name__}: {error}"})
    return found


def experiment(told: Told) -> dict[str, Any]:
    """One experiment, from the JSON form of its result."""
    request = told.get("unit") == "request"
    pairs = told.get("pairs") or ()
    return {
        "remedy": remedy(told["remedy"]), "outcome": told["outcome"],
        "score": told["score"] if told.get("prediction") else "", "meaning": score(told),
        "picture": ratio_chart(told), "nothing": told.get("reason") or "no pair counts",
        "of": {"request": "ms a request", "sample": "ms a step"}.get(told.get("unit") or "", "ms"),
        "ratio_of": "ratio a sample" if told.get("unit") == "sample" else "ratio",
        "pairs": [_pair(k, pair, "latency_ms" if request else "step_ms") for k, pair in enumerate(pairs, 1)],
        "change": _change(told), "loss": parity(told.get("loss")) if told.get("ratio") else "",
        "notes": list(told.get("notes") or []),
    }


def _pair(number: int, pair: Told, time: str) -> tuple[str, ...]:
    """(number, order, time without, time with the remedy, ratio, why it is left out)."""
    marks = [f"{side.upper()} {', '.join(pair[side]['marks'])}" for side in "ab" if pair[side]["marks"]]
    times = [pair[side].get(time) for side in "ab"]  # none where it failed
    decimals = ms_decimals(1e6 * min((ms for ms in times if ms), default=0.0))
    before, after = (format_ms(ms and ms * 1e6, decimals, unit=False) for ms in times)
    return (str(number), pair["order"].upper(), before, after, format_ratio(pair["ratio"]),
            f"left out: {'; '.join(marks)}" if marks else "")


def _change(told: Told) -> str:
    """In words, for who cannot see the picture, and in absolute figures.

    "Predicted 1.7 to 2.0 x, measured 1.84 x [1.79, 1.90], 52.3 to 28.4 ms per step, ...".
    """
    def both(name: str) -> tuple[float, float] | None:
        sides = told.get(name) or {}
        return (sides["a"], sides["b"]) if sides.get("a") and sides.get("b") else None

    said = []
    if predicted := prediction(told.get("prediction")):
        said.append(f"predicted {predicted}")
    if ratio := told.get("ratio"):
        said.append(f"measured {format_ratio(ratio['median'], (ratio['low'], ratio['high']))}")
    for name, of in (("latency_ms", "for the median request"), ("step_ms", "per step")):
        if times := both(name):
            decimals = ms_decimals(min(times) * 1e6)
            said.append(f"{format_ms(times[0] * 1e6, decimals, unit=False)} \u2192 "
                        f"{format_ms(times[1] * 1e6, decimals)} {of}")
    if rates := both("throughput"):
        said.append(f"{format_rate(rates[0], unit=False)} \u2192 "
                    f"{format_rate(rates[1], told['throughput']['unit'])}")
    text = ", ".join(said)
    return text[:1].upper() + text[1:]
