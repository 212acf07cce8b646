"""Which settings a sweep tries: a grid, a list, or random draws.

A raw point is a mapping of key to text, as a user would type it: the workload's
settings, the command's placeholders and the loader's settings give it a type.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from profiler.errors import UsageError

MOST = 1000  # points of one sweep
_KEY = re.compile(r"[A-Za-z_]\w*\Z")

Raw = Mapping[str, str]
Axes = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included. `log`: all orders of magnitude are as likely."""

    low: float
    high: float
    whole: bool
    log: bool

    def draw(self, chance: random.Random) -> str:
        """A number as text: a whole one, or one with four digits that count."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = chance.uniform(low, high)
        value = min(max(math.exp(value) if self.log else value, self.low), self.high)
        return str(round(value)) if self.whole else f"{value:.4g}"


def text(value: Any) -> str:
    """A value as it is typed: true for True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def label(point: Mapping[str, Any]) -> str:
    """workers=2 batch_size=8"""
    return " ".join(f"{key}={text(value)}" for key, value in point.items())


def parse_axis(given: str) -> tuple[str, tuple[str, ...]]:
    """("workers", ("0", "2")) of "workers=0,2". A value with a comma: 'shape=["1,2", "3,4"]'."""
    key, listed = _key(given, "KEY=A,B,C")
    if listed.startswith("["):
        try:
            values = [text(value) for value in json.loads(listed)]
        except (ValueError, RecursionError):
            raise UsageError(f"the values of {key} are no JSON list", 'Write KEY=["a,b", "c"]') from None
    else:
        values = [value.strip() for value in listed.split(",")]
    if not values or "" in values:
        raise UsageError(f"{given!r} has an empty value", "Write KEY=A,B,C")
    return key, tuple(dict.fromkeys(values))


def parse_range(given: str) -> tuple[str, Range]:
    """("lr", Range) of "lr=0.001:0.1:log". Two whole numbers give whole numbers."""
    key, told = _key(given, "KEY=LOW:HIGH")
    match told.split(":"):
        case [low, high] | [low, high, "log"]:
            log = told.endswith(":log")
        case _:
            raise UsageError(f"{given!r} is no range", "Write KEY=LOW:HIGH, or KEY=LOW:HIGH:log")
    try:
        ends = float(low), float(high)
    except ValueError:
        raise UsageError(f"{given!r} is no range", "Its ends are numbers") from None
    if not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] < ends[1]):
        raise UsageError(f"{given!r} is no range", "The second end is above the first")
    if log and ends[0] <= 0:
        raise UsageError(f"{given!r} cannot be drawn by orders of magnitude", "Its ends are above 0")
    whole = all(re.fullmatch(r"[+-]?\d+", end.strip()) for end in (low, high))
    return key, Range(*ends, whole=whole, log=log)


def _key(given: str, form: str) -> tuple[str, str]:
    key, equals, told = given.partition("=")
    key = key.strip().replace("-", "_")
    if not equals or not _KEY.match(key):
        raise UsageError(f"{given!r} names no values", f"Write {form}")
    return key, told.strip()


def axes_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """By key. UsageError when a key comes twice."""
    found: dict[str, Any] = {}
    for key, values in pairs:
        if key in found:
            raise UsageError(f"{key} is given twice", "Name all its values in one option")
        found[key] = values
    return found


def grid(axes: Axes) -> list[dict[str, str]]:
    """Every combination, the last key changing fastest. UsageError for none and for too many."""
    count = math.prod(map(len, axes.values()))
    if not axes or count > MOST:
        told = count if count < 10**15 else "more than 10^15"
        raise UsageError(f"a grid of {told} points" if axes else "no values to try",
                         f"At most {MOST}; --random N draws some of them" if axes else "Add --grid KEY=A,B,C")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def listed(lines: Iterable[str]) -> list[dict[str, str]]:
    """One JSON object a line, all with the same keys; empty lines are left out. UsageError otherwise."""
    found: list[dict[str, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line, object_pairs_hook=axes_of)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict) or not told:
            raise UsageError(f"line {number} of the list is no JSON object", 'Write {"workers": 2} on each')
        point = {str(key): text(value) for key, value in told.items()}
        if found and point.keys() != found[0].keys():
            raise UsageError(f"line {number} of the list has other keys than the first",
                             f"Each has {', '.join(found[0])}")
        if point not in found:
            found.append({key: point[key] for key in (found[0] if found else point)})
    if not found:
        raise UsageError("the list holds no point", 'Write {"workers": 2} on a line')
    if len(found) > MOST:
        raise UsageError(f"the list holds {len(found)} points", f"At most {MOST}")
    return found


def drawn(axes: Axes, ranges: Mapping[str, Range], count: int, seed: int) -> list[dict[str, str]]:
    """`count` different points; fewer where there are no more. The same seed draws the same."""
    if not axes and not ranges:
        raise UsageError("nothing to draw from", "Add --grid KEY=A,B,C or --range KEY=LOW:HIGH")
    if both := axes.keys() & ranges.keys():
        raise UsageError(f"{min(both)} has both values and a range", "Give one of them")
    chance = random.Random(seed)
    found: list[dict[str, str]] = []
    for _ in range(20 * count):  # a small space is soon drawn empty
        point = {key: chance.choice(list(values)) for key, values in axes.items()}
        point |= {key: limits.draw(chance) for key, limits in ranges.items()}
        if point not in found:
            found.append(point)
        if len(found) == count:
            break
    return found
