"""Does the remedy leave the work as it was? Compared by the losses, or confidences, that are printed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Nothing in these goes back over what it took: a line may be a million letters of anything.
_NUMBER = r"['\"]?\s*+(?:[=:]\s*+)?([-+]?(?:\d++\.?\d*+(?:e[-+]?\d++)?|nan|inf))"
# What a model puts out is told by its loss; of inference by how sure it is of its answers.
_TOLD = {what: re.compile(what + _NUMBER, re.IGNORECASE) for what in ("loss", "confidence")}
# What differs between two runs at the same step: clock times, durations and rates, as progress bars show.
_PASSING = re.compile(r"(?<!\d)(?:\d{4}-\d\d-\d\d|\d++:\d\d(?::\d\d)?(?:[.,]\d++)?"
                      r"|\d++(?:\.\d*+)?\s*+(?:ms|s|sec|s/it|[a-z]+/s(?:ec)?)\b)", re.IGNORECASE)
SAME = 0.01  # relative


@dataclass(frozen=True)
class Parity:
    """`state`: agrees, differs, not repeatable (without the remedy it differs too), not compared.

    `at` is what the program printed before the two figures: "step 60/60". `what`: loss or confidence.
    `why` it was not compared.
    """

    state: str
    at: str = ""
    a: float | None = None
    b: float | None = None
    what: str = "loss"
    why: str = ""


def printed(output: bytes) -> tuple[str, dict[str, float]]:
    """What is told (loss; confidence where there is none), and its values by the text before them.

    Times and rates in that text are left out. Where no number is left in it, which line of its kind it is
    stands behind it: "loss, line 12".
    """
    lines = re.split(r"[\r\n]+", output.decode("utf-8", "replace"))
    for what, pattern in _TOLD.items():
        found: dict[str, float] = {}
        seen: Counter[str] = Counter()
        for line in lines:
            if match := pattern.search(line):
                at = " ".join(_PASSING.sub("", line[:match.start()]).split())
                seen[at] += 1
                if not re.search(r"\d", at):
                    at = f"{at} {what}, line {seen[at]}".strip()
                found[at] = float(match[1])
        if found:
            return what, found
    return "loss", {}


def compare(a: Sequence[Mapping[str, float]], b: Sequence[Mapping[str, float]], what: str = "loss") -> Parity:
    """At the last point that every run printed."""
    common = [key for key in a[0] if all(key in losses for losses in (*a, *b))] if a and b else []
    if not common:
        return Parity("not compared", what=what, why="the program prints none at the same step of both")
    at = common[-1]
    before, after = [losses[at] for losses in a], [losses[at] for losses in b]
    shown = float(np.median(before)), float(np.median(after))
    state = "agrees" if _all_same([*before, *after]) else "differs"
    return Parity(state if _all_same(before) else "not repeatable", at, *shown, what)


def _all_same(values: Sequence[float]) -> bool:
    if not all(map(math.isfinite, values)):
        return len({str(value) for value in values}) == 1
    return max(values) - min(values) <= SAME * max(map(abs, values))
