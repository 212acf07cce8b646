"""Sets of time against sets of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.trace import intervals
from profiler.trace.model import Ints

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def instants(times: Ints) -> set[int]:
    return {t for t0, t1 in times.tolist() for t in range(t0, t1)}


def made(pairs: list[tuple[int, int]]) -> tuple[Ints, set[int]]:
    start = np.array([a for a, _ in pairs], np.int64)
    end = start + np.array([n for _, n in pairs], np.int64)
    return intervals.union(start, end), instants(np.stack((start, end), axis=1))


@given(PAIRS)
def test_union_is_sorted_disjoint_and_covers_the_same(pairs: list[tuple[int, int]]) -> None:
    times, wanted = made(pairs)
    assert instants(times) == wanted
    assert intervals.total(times) == len(wanted)
    edges = times.ravel()
    assert (np.diff(edges) > 0).all()


@given(PAIRS, PAIRS, st.integers(0, 50), st.integers(0, 50))
def test_operations(one: list[tuple[int, int]], two: list[tuple[int, int]], t0: int, t1: int) -> None:
    (a, in_a), (b, in_b) = made(one), made(two)
    assert instants(intervals.intersect(a, b)) == in_a & in_b
    assert instants(intervals.subtract(a, b)) == in_a - in_b
    assert instants(intervals.either(a, b)) == in_a | in_b
    assert instants(intervals.clip(a, t0, t1)) == in_a & set(range(t0, t1))
    assert instants(intervals.complement(a, t0, t1)) == set(range(t0, t1)) - in_a


@given(PAIRS, PAIRS)
def test_meet_tells_which_intervals(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    (a, _), (b, _) = made(one), made(two)
    rows, others, times = intervals.meet(a, b)
    for row, other, (t0, t1) in zip(rows, others, times.tolist(), strict=True):
        assert max(a[row, 0], b[other, 0]) == t0 < t1 == min(a[row, 1], b[other, 1])


@given(PAIRS, PAIRS)
def test_covered_counts_instants(one: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    times, inside = made(one)
    start = np.array([a for a, _ in asked], np.int64)
    end = start + np.array([n for _, n in asked], np.int64)
    wanted = [len(inside & set(range(a, a + n))) for a, n in asked]
    assert intervals.covered(times, start, end).tolist() == wanted
