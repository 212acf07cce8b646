"""What pairs say: ratio with interval, outcome, and how the prediction did. Definitions, section 7."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.rules.base import Prediction

FEWEST = 3  # pairs that carry an outcome
ENOUGH = 6  # pairs whose interval holds the true median in 95 of 100 cases
BOOTSTRAP_FROM = 8  # pairs
RESAMPLES = 10_000
FASTER, SLOWER = 1.02, 0.98
WIDEST = 1.3  # high over low of a prediction that says something

IMPROVEMENT, REGRESSION, NO_DIFFERENCE = "improvement", "regression", "no difference shown"
UNFINISHED, FAILS = "unfinished", "fails with the remedy"
# Student's t for 99 % at n pairs, from n = 3 on; the last one, above them all, for more.
_T99 = (9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25)


@dataclass(frozen=True)
class Ratio:
    """Step time before over step time with the remedy: the median over pairs and its interval.

    `coverage`: how often such an interval holds the true median. The 95 % bootstrap
    interval of 3 to 5 pairs is their range, which holds it with 1 - 2^(1 - n): 75 % for
    3 pairs, 88 % for 4 and 94 % for 5. That of 6 and 7 pairs would fall short of 95 %
    (88 % for 7), so their range is given too: 97 and 98 %. From eight on it is the
    bootstrap's.
    """

    median: float
    low: float
    high: float
    pairs: int
    coverage: float



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


def decided(ratios: Sequence[float]) -> bool:
    """Whether so many pairs are enough for an improvement or a regression.

    Who looks after each pair and stops at the first that looks decided claims too much:
    of no difference and noise of 10 %, the range of three to five pairs would claim one
    in 15 of 100 cases. So Student's interval of the mean logarithm must say it as well, with 99 %.
    """
    found = outcome(ratio_of(ratios))
    if found not in (IMPROVEMENT, REGRESSION):
        return False
    logs = np.log(np.asarray(ratios, np.float64))
    reach = _T99[min(len(logs) - FEWEST, len(_T99) - 1)] * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    if found == IMPROVEMENT:
        return float(logs.mean()) - reach > math.log(FASTER)
    return float(logs.mean()) + reach < math.log(SLOWER)


def score(prediction: Prediction | None, ratio: Ratio | None) -> str:
    """hit, miss, vague (the prediction is too wide to be wrong), not scored."""
    if prediction is None or prediction.at_most or ratio is None or ratio.pairs < FEWEST:
        return "not scored"
    if prediction.high > WIDEST * prediction.low * (1 + 1e-9):
        return "vague"
    return "hit" if prediction.low <= ratio.median <= prediction.high else "miss"
