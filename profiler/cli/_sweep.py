"""What `sweep` prints: a response curve or heat map with noise bands, the best point, and how to use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profiler.cli._common import print_table
from profiler.experiments.statistics import IMPROVEMENT, NO_DIFFERENCE, REGRESSION
from profiler.experiments.sweep.points import text
from profiler.experiments.sweep.result import BEST, MEASURED
from profiler.units import format_energy, format_gib, format_ms, format_number, format_rate, format_ratio

WIDTH = 24  # letters of a bar
SHADES = ".:-=+x%#"  # from the slowest to the fastest
WORDS = {REGRESSION: "slower", IMPROVEMENT: "faster", NO_DIFFERENCE: NO_DIFFERENCE}


def print_sweep(told: Mapping[str, Any]) -> None:
    """From the JSON form of a sweep."""
    if len(told["keys"]) == 2:
        _print_map(told, *told["keys"])
    _print_points(told)
    print()
    _print_best(told)
    for point in told["points"]:
        for left in point["left_out"]:
            print(f"Left out: {point['label']}, run {left['run']}: {left['why']}.")
    early = [(p["given_up"], p["label"]) for p in told["points"] if p["given_up"] and not p["left_out"]]
    for why in dict.fromkeys(why for why, _ in early):
        print(f"Not run to the end, {why}: {listed([name for own, name in early if own == why])}.")
    for item in told["skipped"]:
        print(f"Skipped: {item['label']}: {item['why']}.")
    for note in told["notes"]:
        print(f"Note: {note}.")


def band(rate: Mapping[str, Any] | None) -> str:
    """61.2 [60.8, 61.9]; the median alone where it was run once."""
    if not rate:
        return ""
    ends = [format_rate(rate[name], unit=False) for name in ("median", "low", "high")]
    return ends[0] if rate["runs"] < 2 else f"{ends[0]} [{ends[1]}, {ends[2]}]"


def _print_points(told: Mapping[str, Any]) -> None:
    """A row for each point: of one key in its order, as a curve; of several the fastest first."""
    points = list(told["points"])
    if len(told["keys"]) > 1:
        points.sort(key=lambda point: -point["rate"]["median"] if point["rate"] else 0.0)
    else:
        points = [point for value in ordered(p["point"][told["keys"][0]] for p in points)
                  for point in points if point["point"][told["keys"][0]] == value]
    most = max((point["rate"]["high"] for point in points if point["rate"]), default=0.0)
    columns = {"memory": any(point["memory_bytes"] is not None for point in points),
               "energy": any(point["energy_j"] is not None for point in points)}
    head = [*told["keys"], told["unit"], "step, ms", *(name for name, there in columns.items() if there), "",
            "against the best"]
    rows = [[*(text(point["point"][key]) for key in told["keys"]), *_figures(point, columns),
             _bar(point["rate"], most), _remark(point)] for point in points]
    print_table(rows, head, [k for k, name in enumerate(head) if name in ("step, ms", "memory")])
    print(f"Bars: the median, to the ends of its noise band. P: on the Pareto front of {told['unit']}"
          + "".join(f" and {name}" for name, there in columns.items() if there)
          + (f". Memory: peak, {told['memory_of']}" if columns["memory"] else "") + ".")


def _figures(point: Mapping[str, Any], columns: Mapping[str, bool]) -> list[str]:
    step = point["step_ms"]
    cells = [band(point["rate"]), "" if step is None else format_ms(step * 1e6, unit=False)]
    if columns["memory"]:
        cells.append(format_gib(point["memory_bytes"]))
    if columns["energy"]:
        cells.append(format_energy(point["energy_j"]))
    return cells


def _bar(rate: Mapping[str, Any] | None, most: float) -> str:
    """#### up to the low end, ==| up to the median, -- up to the high end."""
    if not rate or most <= 0:
        return ""
    low, median, high = (round(WIDTH * rate[name] / most) for name in ("low", "median", "high"))
    return f"{'#' * low}{'=' * (median - low)}|{'-' * (high - median)}".ljust(WIDTH + 1)


def _remark(point: Mapping[str, Any]) -> str:
    front = " P" if point["pareto"] else ""
    if point["state"] == BEST:
        return f"best{front}"
    if point["state"] != MEASURED:
        return point["state"] + front
    ratio = point["against_best"]
    told = format_ratio(ratio["median"], (ratio["low"], ratio["high"]) if ratio["runs"] > 1 else None) \
        if ratio else ""
    if point["given_up"]:
        return f"{told} given up early{front}".strip()
    return f"{told} {WORDS.get(point['outcome'], 'too few runs to tell')}{front}".strip()


def ordered(values: Iterable[Any]) -> list[Any]:
    """Each once: numbers by size, others as they come."""
    found = list(dict.fromkeys(values))
    try:
        return sorted(found, key=float)
    except ValueError:
        return found


def _print_map(told: Mapping[str, Any], first: str, second: str) -> None:
    """A heat map: the median and its band in each cell, shaded by a sign. None where most cells are empty."""
    cells = {(p["point"][first], p["point"][second]): p for p in told["points"]}
    rows_of, columns = ordered(a for a, _ in cells), ordered(b for _, b in cells)
    if 2 * len(cells) < len(rows_of) * len(columns):
        return
    most = max((p["rate"]["median"] for p in told["points"] if p["rate"]), default=0.0)
    rows = [[text(a), *(_cell(cells.get((a, b)), most) for b in columns)] for a in rows_of]
    head = [f"{first} \\ {second}", *map(text, columns)]
    print(f"{told['unit']}, median and noise band; * the best, shades from . to # by the median")
    print_table(rows, head)
    print()


def _cell(point: Mapping[str, Any] | None, most: float) -> str:
    if point is None:
        return "-"
    if not point["rate"]:
        return str(point["state"])
    shade = SHADES[min(7, int(8 * point["rate"]["median"] / most))] if most > 0 else "."
    return f"{shade} {band(point['rate'])}{' *' if point['state'] == BEST else ''}"


def _print_best(told: Mapping[str, Any]) -> None:
    best = told["best"]
    if not best:
        print("No point came to an end.")
        return
    point = next(p for p in told["points"] if p["label"] == best["label"])
    print(f"Best: {best['label']}, {band(point['rate'])} {told['unit']}")
    if best["as_good"]:
        print(f"No difference shown from it: {listed(best['as_good'])}")
    _print_use(best)


def _print_use(best: Mapping[str, Any]) -> None:
    if best["in_code"]:
        print(f"Use this setting, in the script:\n  {best['in_code']}\nOr for once, without an edit:")
    else:
        print("Use this setting:")
    print(f"  {best['command']}")


def change_line(told: Mapping[str, Any]) -> str:
    """workers 0 → 2: 1.92 × [1.90, 1.95], faster, kept"""
    ratio = told["ratio"]
    measured = format_ratio(ratio["median"], (ratio["low"], ratio["high"]) if ratio["runs"] > 1 else None) \
        if ratio else ""
    said = WORDS.get(told["outcome"], told["outcome"])
    return (f"{told['key']} {text(told['from'])} \u2192 {text(told['to'])}: "
            + ", ".join(filter(None, (measured, said, "kept" if told["kept"] else "", told["why"]))))


def print_search(told: Mapping[str, Any]) -> None:
    """From the JSON form of a search by itself."""
    for k, seen in enumerate(told["diagnoses"], 1):
        print(f"Diagnosis {k}: {', '.join([seen['verdict'], *seen['also']])}: {seen['reason']}")
    print()
    for change in told["changes"]:
        print(change_line(change))
    best = told["best"]
    if best:
        gain = best["gain"]
        print()
        print(f"Best: {best['label']}" + (f", {band(best['rate'])} {told['unit']}" if best["rate"] else ""))
        if gain:
            print(f"Against the start: {format_ratio(gain['median'], (gain['low'], gain['high']))}")
        if any(change["kept"] for change in told["changes"]):
            _print_use(best)
        elif not gain:
            print("No change was an improvement of more than 2 %: it stays as it is")
    for note in told["notes"]:
        print(f"Note: {note}.")


def listed(labels: Sequence[str]) -> str:
    """workers=2; workers=4; and 3 more."""
    more = len(labels) - 5
    return "; ".join(labels[:5]) + (f"; and {format_number(more)} more" if more > 0 else "")
