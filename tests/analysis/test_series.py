"""Gaps and intervals on a time axis."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.series import (
    covered,
    gaps,
    intervals,
    merged,
    overlaps,
    spacing,
    throttles,
)

TICK = 100_000_000
SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), max_size=12).map(
    lambda items: np.array([(t, t + n) for t, n in items], np.int64).reshape(-1, 2))


def ticks(*at):
    return np.array(at, np.int64) * TICK


def test_a_gap_is_told_by_its_ends():
    assert gaps(ticks(0, 1, 2, 9, 10, 11)).tolist() == [[2 * TICK, 9 * TICK]]
    assert gaps(ticks(0, 1, 2, 3)).tolist() == []
    assert gaps(ticks(0, 50)).tolist() == []  # nothing tells what is usual
    assert np.isnan(spacing(ticks(3)))


def test_an_interval_ends_at_the_first_sample_that_differs():
    t = ticks(0, 1, 2, 3, 4, 5)
    holds = np.array([0, 1, 1, 0, 0, 1], bool)
    assert intervals(t, holds).tolist() == [[TICK, 3 * TICK], [5 * TICK, 6 * TICK]]


def test_an_interval_does_not_reach_across_a_gap():
    t = ticks(0, 1, 2, 20, 21, 22)
    assert intervals(t, np.ones(6, bool)).tolist() == [[0, 3 * TICK], [20 * TICK, 23 * TICK]]


@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_intervals_cover_exactly_the_samples_that_hold(holds):
    t = np.arange(len(holds), dtype=np.int64) * TICK
    found = intervals(t, np.array(holds))
    inside = overlaps(t, t + 1, found)
    assert inside.tolist() == holds
    assert covered(found, 0, len(holds) * TICK) == sum(holds) * TICK


def test_throttling_is_told_by_reason_and_idle_is_none():
    t = ticks(0, 1, 2, 3, 4, 5, 6)
    found = list(throttles(t, np.array([0x1, 0x20, 0x20, 0x24, 0x0, 0x8, 0x0])))
    assert [(s.t0_ns // TICK, s.t1_ns // TICK) for s in found] == [(1, 3), (3, 4), (5, 6)]
    assert found[0].reasons == ("thermal (software)",)
    assert found[1].reasons == ("power cap (software)", "thermal (software)")
    assert not len(throttles(ticks(), np.empty(0)))


@given(SPANS)
def test_merged_spans_are_disjoint_in_order_and_cover_the_same(spans):
    result = merged(spans)
    assert (result[1:, 0] > result[:-1, 1]).all()
    marks = np.zeros(300, bool)
    for t0, t1 in spans:
        marks[t0:t1] = True
    assert covered(spans, 0, 300) == marks.sum()
    assert sum(t1 - t0 for t0, t1 in result) == marks.sum()


@given(SPANS, st.integers(0, 250), st.integers(1, 50))
def test_overlap_is_a_shared_instant(spans, t0, length):
    disjoint = merged(spans)
    expected = any(a < t0 + length and t0 < b for a, b in disjoint)
    assert overlaps(np.array([t0]), np.array([t0 + length]), disjoint).tolist() == [expected]


@pytest.mark.parametrize("holds", [[], [False] * 4])
def test_nothing_holds(holds):
    assert intervals(np.arange(len(holds), dtype=np.int64), np.array(holds, bool)).shape == (0, 2)


MASKS = st.lists(st.sampled_from([0, 0, 1, 0x4, 0x4, 0x20, 0x24]), min_size=1, max_size=80)


@given(MASKS, st.integers(0, 12))
def test_joined_intervals_are_few_in_order_and_hold_as_long_together(masks, pause):
    t = np.arange(len(masks), dtype=np.int64) * TICK
    exact = throttles(t, np.array(masks, float))
    found = list(exact.joined(pause * TICK))
    assert found == list(throttles(t, np.array(masks, float), pause * TICK))
    assert sum(s.held_ns for s in found) == sum(s.t1_ns - s.t0_ns for s in exact)
    assert all(a.t1_ns <= b.t0_ns for a, b in itertools.pairwise(found))
    assert all(s.held_ns <= s.t1_ns - s.t0_ns for s in found)
    assert {reason for s in found for reason in s.reasons} == {r for s in exact for r in s.reasons}
    if pause:
        assert len(found) <= 2 * len(masks) / pause + 2


@given(MASKS)
def test_of_each_reason_the_intervals_are_those_of_its_bit(masks):
    t = np.arange(len(masks), dtype=np.int64) * TICK
    found = throttles(t, np.array(masks, float)).by_reason
    for bit, reason in ((0x4, "power cap (software)"), (0x20, "thermal (software)")):
        expected = intervals(t, np.array(masks) & bit != 0).tolist()
        assert found.get(reason, np.empty((0, 2))).tolist() == expected


def test_how_long_a_throttled_time_was_in_words():
    t = np.arange(40, dtype=np.int64) * TICK
    (one,) = throttles(t, np.array([4.0, 0.0] * 20), TICK)
    assert one.took == "2.0 of 3.9\u00a0s" and one.reasons == ("power cap (software)",)
    assert next(iter(throttles(t, np.full(40, 4.0)))).took == "4.0\u00a0s"
