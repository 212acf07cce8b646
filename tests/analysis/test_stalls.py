"""Which long steps are accidents, and which recur."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.stalls import find_stalls, rhythm

WALLS = st.lists(st.floats(1e3, 1e10), min_size=1, max_size=60).map(np.array)


@given(WALLS)
def test_stalls_are_long_and_those_left_out_are_rare(wall):
    found = find_stalls(wall, np.arange(len(wall)))
    assert found.left_out.sum() <= 0.05 * len(wall) and not (found.left_out & found.recurring).any()
    assert (wall[found.left_out | found.recurring] > 3 * np.median(wall)).all()
    assert (found.every is not None) == found.recurring.any()


def walls(n, every, stall, usual=10.0):
    return np.array([stall if k % every == every - 1 else usual for k in range(n)])


@pytest.mark.parametrize("every", [5, 10, 50])
def test_a_stall_every_so_many_steps_counts_where_it_costs(every):
    costly = find_stalls(walls(4 * every, every, 10.0 * every), np.arange(4 * every))
    assert costly.every == every and costly.recurring.sum() == 4 and not costly.left_out.any()


def test_a_stall_that_costs_little_is_left_out():
    cheap = find_stalls(walls(400, 100, 40.0), np.arange(400))
    assert cheap.every is None and cheap.left_out.sum() == 4


def test_stalls_without_a_rhythm_are_accidents():
    wall = np.full(200, 10.0)
    wall[[12, 30, 41, 120, 133]] = 500.0
    assert find_stalls(wall, np.arange(200)).left_out.sum() == 5


def test_steps_that_are_missing_do_not_hide_the_rhythm():
    """First steps of epochs are no steady steps: the loop's own numbers count."""
    index = np.array([k for k in range(100) if k % 7])
    wall = np.where(index % 10 == 9, 200.0, 10.0)
    assert find_stalls(wall, index).every == 10


def test_rhythm_needs_three():
    assert rhythm(np.array([10, 20])) is None
    assert rhythm(np.array([10, 20, 30])) == 10
    assert rhythm(np.array([10, 11, 12])) is None  # every step: the loop's own pace
    assert rhythm(np.array([3, 20, 24, 70])) is None
