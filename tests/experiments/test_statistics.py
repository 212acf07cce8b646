from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.experiments.statistics import (
    BOOTSTRAP_FROM,
    IMPROVEMENT,
    NO_DIFFERENCE,
    REGRESSION,
    UNFINISHED,
    decided,
    outcome,
    ratio_of,
    score,
)
from profiler.rules.base import Prediction

ratios = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=20)


@given(ratios)
@settings(max_examples=60, deadline=None)
def test_interval_holds_the_median_and_lies_in_the_range(values: list[float]) -> None:
    ratio = ratio_of(values)
    assert ratio is not None
    assert min(values) <= ratio.low <= ratio.median <= ratio.high <= max(values)
    assert ratio.median == pytest.approx(float(np.median(values)))
    assert ratio.coverage == (0.95 if len(values) >= BOOTSTRAP_FROM else 1 - 2.0 ** (1 - len(values)))


@given(ratios, st.randoms())
@settings(max_examples=30, deadline=None)
def test_order_of_pairs_does_not_matter_and_figures_repeat(values: list[float], random) -> None:  # type: ignore[no-untyped-def]
    mixed = list(values)
    random.shuffle(mixed)
    assert ratio_of(values) == ratio_of(mixed)


@given(st.lists(st.floats(0.5, 5.0), min_size=1, max_size=BOOTSTRAP_FROM - 1))
@settings(max_examples=30, deadline=None)
def test_few_pairs_give_their_range_and_say_how_much_that_is(values: list[float]) -> None:
    ratio = ratio_of(values)
    assert ratio is not None
    assert (ratio.low, ratio.high) == (min(values), max(values))
    assert ratio.coverage == 1 - 2.0 ** (1 - len(values))


@given(st.lists(st.floats(0.5, 5.0), min_size=8, max_size=12), st.sampled_from([0.5, 2.0, 4.0]))
@settings(max_examples=20, deadline=None)
def test_scales_with_the_ratios(values: list[float], factor: float) -> None:
    one, other = ratio_of(values), ratio_of([factor * v for v in values])
    assert one is not None and other is not None
    assert other.low == pytest.approx(factor * one.low)
    assert other.high == pytest.approx(factor * one.high)


@pytest.mark.parametrize("pairs", [3, 4, 5, 6, 7, 8, 15])
def test_intervals_hold_the_truth_about_as_often_as_they_say(pairs: int) -> None:
    rng = np.random.default_rng(1)
    held = said = 0.0
    for _ in range(200):
        ratio = ratio_of(list(np.exp(rng.normal(np.log(1.5), 0.05, pairs))))
        assert ratio is not None
        held += ratio.low <= 1.5 <= ratio.high
        said = ratio.coverage
    assert held / 200 >= said - 0.05


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_stopping_early_claims_no_difference_that_is_none(noise: float) -> None:
    """Looked at after each pair from the third to the fifth, as an experiment does."""
    rng = np.random.default_rng(2)
    claims = sum(any(decided(values[:n]) for n in (3, 4, 5))
                 for values in (list(np.exp(rng.normal(0.0, noise, 5))) for _ in range(2000)))
    assert claims / 2000 < 0.02


def test_a_large_difference_is_decided_at_the_third_pair() -> None:
    assert decided([1.75, 1.85, 1.8]) and decided([0.55, 0.5, 0.53])
    assert decided([2.0, 2.0, 2.0])
    assert not decided([1.75, 1.85])
    assert not decided([1.04, 1.3, 1.1])  # wholly above 1.02, and as likely noise
    assert not decided([1.0, 1.01, 0.99])


def test_outcomes() -> None:
    assert outcome(None) == outcome(ratio_of([1.8, 1.9])) == UNFINISHED
    assert outcome(ratio_of([1.8, 1.9, 1.7])) == IMPROVEMENT
    assert outcome(ratio_of([0.8, 0.9, 0.97])) == REGRESSION
    assert outcome(ratio_of([1.02, 1.5, 1.5])) == NO_DIFFERENCE  # not wholly above
    assert outcome(ratio_of([0.98, 0.9, 0.9])) == NO_DIFFERENCE
    assert ratio_of([]) is None


@pytest.mark.parametrize(("low", "high", "at_most", "told"), [
    (1.5, 1.9, False, "hit"), (1.2, 1.5, False, "miss"), (1.9, 2.2, False, "miss"),
    (1.0, 1.31, False, "vague"), (1.0, 1.3, False, "miss"), (1.4, 1.82, False, "hit"),
    (1.0, 2.0, True, "not scored")])
def test_scores(low: float, high: float, at_most: bool, told: str) -> None:
    prediction = Prediction("no_input_wait", (low + high) / 2, low, high, at_most)
    assert score(prediction, ratio_of([1.7, 1.8, 1.75])) == told


def test_no_prediction_and_too_few_pairs_are_not_scored() -> None:
    assert score(None, ratio_of([1.7, 1.8, 1.75])) == "not scored"
    assert score(Prediction("x", 1.7, 1.6, 1.8), ratio_of([1.7, 1.8])) == "not scored"
    assert score(Prediction("x", 1.7, 1.6, 1.8), None) == "not scored"
