"""What pairs say: ratio with interval, outcome, and how the prediction did. Definitions, section 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.rules.base import Prediction

FEWEST = 3  # pairs that carry an outcome
BOOTSTRAP_FROM = 6  # pairs
RESAMPLES = 10_000
FASTER, SLOWER = 1.02, 0.98
WIDEST = 1.3  # high over low of a prediction that says something

IMPROVEMENT, REGRESSION, NO_DIFFERENCE = "improvement", "regression", "no difference shown"
UNFINISHED = "unfinished"


@dataclass(frozen=True)
class Ratio:
    """Step time before over step time with the remedy: the median over pairs and its interval.

    `coverage`: how often such an interval holds the true median. From six pairs on it
    is a 95 % bootstrap interval. A bootstrap of fewer cannot reach beyond their range
    and often stays inside it, so their whole range is given: it holds the true
    median with 1 - 2^(1 - n), which is 75 % for 3 pairs, 88 % for 4 and 94 % for 5.
    """

    median: float
    low: float
    high: float
    pairs: int
    coverage: float

    @property
    def decided(self) -> bool:
        return outcome(self) in (IMPROVEMENT, REGRESSION)


def ratio_of(ratios: Sequence[float], seed: int = 0) -> Ratio | None:
    """Of the ratios of all pairs that count; None without any. The same ratios give the same interval."""
    values = np.sort(np.asarray(ratios, np.float64))
    n = len(values)
    if not n:
        return None
    median = float(np.median(values))
    if n < BOOTSTRAP_FROM:
        return Ratio(median, float(values[0]), float(values[-1]), n, 1 - 2.0 ** (1 - n))
    drawn = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))
    medians = np.median(values[drawn], axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    # interpolation between equal values may miss them by the last bit
    return Ratio(median, min(float(low), median), max(float(high), median), n, 0.95)


def outcome(ratio: Ratio | None) -> str:
    """improvement, regression, no difference shown; unfinished below three pairs."""
    if ratio is None or ratio.pairs < FEWEST:
        return UNFINISHED
    if ratio.low > FASTER:
        return IMPROVEMENT
    if ratio.high < SLOWER:
        return REGRESSION
    return NO_DIFFERENCE


def score(prediction: Prediction | None, ratio: Ratio | None) -> str:
    """hit, miss, vague (the prediction is too wide to be wrong), not scored."""
    if prediction is None or prediction.at_most or ratio is None or ratio.pairs < FEWEST:
        return "not scored"
    if prediction.high > WIDEST * prediction.low * (1 + 1e-9):
        return "vague"
    return "hit" if prediction.low <= ratio.median <= prediction.high else "miss"
