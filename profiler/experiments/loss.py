"""Does the remedy leave the training as it was? Compared by the losses that the program prints."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_LOSS = re.compile(r"loss['\"]?\s*[=:]?\s*([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))", re.IGNORECASE)
SAME = 0.01  # relative


@dataclass(frozen=True)
class Parity:
    """`state`: agrees, differs, not repeatable (without the remedy it differs too), not compared.

    `at` is what the program printed before the two losses: "step 60/60".
    """

    state: str
    at: str = ""
    a: float | None = None
    b: float | None = None


def printed(output: bytes) -> dict[str, float]:
    """Losses by the text before them on their line, in order of printing."""
    found = {}
    for line in re.split(r"[\r\n]+", output.decode("utf-8", "replace")):
        if match := _LOSS.search(line):
            found[line[:match.start()].strip()] = float(match[1])
    return found


def compare(a: Sequence[Mapping[str, float]], b: Sequence[Mapping[str, float]]) -> Parity:
    """At the last point that every run printed."""
    if not a or not b or not a[0]:
        return Parity("not compared")
    common = [key for key in a[0] if all(key in losses for losses in (*a, *b))]
    if not common:
        return Parity("not compared")
    at = common[-1]
    before, after = [losses[at] for losses in a], [losses[at] for losses in b]
    shown = float(np.median(before)), float(np.median(after))
    if not _all_same(before):
        return Parity("not repeatable", at, *shown)
    return Parity("agrees" if _all_same([*before, *after]) else "differs", at, *shown)


def _all_same(values: Sequence[float]) -> bool:
    if not all(map(math.isfinite, values)):
        return len({str(value) for value in values}) == 1
    return max(values) - min(values) <= SAME * max(map(abs, values))
