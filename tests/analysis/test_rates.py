"""Means of rates over the times that count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.rates import mean_inside
from profiler.analysis.series import covered


def spans(*pairs):
    return np.array(pairs, np.int64).reshape(-1, 2)


def at(*times):
    return np.array(times, np.int64)


def test_a_reading_between_the_spans_does_not_count():
    t, rates = at(0, 100, 200, 300, 400), np.array([9.0, 0.1, 5.0, 0.3, 0.5])
    assert mean_inside(t, rates, spans((0, 100), (200, 300))) == pytest.approx(0.2)
    assert mean_inside(t, rates, spans((0, 95), (195, 300))) == pytest.approx(0.2)  # late readings


def test_longer_times_weigh_more():
    assert mean_inside(at(0, 100, 400), np.array([0.0, 1.0, 0.0]), spans((0, 400))) == pytest.approx(0.25)


def test_spans_shorter_than_the_time_between_readings():
    t, rates = at(0, 100, 200, 300), np.array([0.0, 0.4, 0.6, 1.0])
    assert mean_inside(t, rates, spans((0, 50), (60, 110), (120, 200))) == pytest.approx(0.5)


def test_nothing_to_tell():
    assert mean_inside(at(5), np.array([1.0]), spans((0, 10))) is None
    assert mean_inside(at(), np.empty(0), spans((0, 10))) is None
    assert mean_inside(at(5, 6), np.array([1.0, 1.0]), spans()) is None
    assert mean_inside(at(50, 60), np.array([1.0, 1.0]), spans((0, 10))) is None


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 100)), min_size=1, max_size=8),
       st.lists(st.integers(0, 1100), min_size=2, max_size=20, unique=True))
def test_as_by_one_interval_after_the_other(pairs, times):
    inside = spans(*((t, t + n) for t, n in pairs))
    t = np.array(sorted(times), np.int64)
    rates = np.arange(len(t), dtype=np.float64)
    whole = [(b - a, rate) for a, b, rate in zip(t[:-1], t[1:], rates[1:], strict=True)
             if covered(inside, int(a), int(b)) >= 0.9 * (b - a)]
    if whole:
        expected = sum(w * r for w, r in whole) / sum(w for w, _ in whole)
        assert mean_inside(t, rates, inside) == pytest.approx(expected)
