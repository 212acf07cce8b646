"""Sums and groups over random trees, against walking up row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.trace.nesting import inside_own_group, spans, subtotals
from profiler.trace.model import NONE, Codes


@st.composite
def trees(draw: st.DrawFn) -> Codes:
    """A parent before every row, or none."""
    n = draw(st.integers(0, 40))
    return np.array([draw(st.integers(NONE, i - 1)) for i in range(n)], np.int32)


def above(parent: Codes, row: int) -> list[int]:
    """The row and all above it."""
    found = []
    while row != NONE:
        found.append(row)
        row = int(parent[row])
    return found


@given(trees())
def test_every_row_passes_its_value_to_all_above_it(parent: Codes) -> None:
    values = np.arange(len(parent), dtype=np.int64) ** 2 + 1
    expected = np.zeros(len(parent), np.int64)
    for row in range(len(parent)):
        expected[above(parent, row)] += values[row]
    assert subtotals(parent, values).tolist() == expected.tolist()


@given(trees())
def test_a_span_holds_what_is_inside_the_row_and_nothing_else(parent: Codes) -> None:
    place, end = spans(parent)
    assert sorted(place.tolist()) == list(range(len(parent)))
    for one in range(len(parent)):
        for other in range(len(parent)):
            assert (place[one] <= place[other] < end[one]) == (one in above(parent, other))


@given(trees(), st.data())
def test_inside_a_row_of_its_own_group(parent: Codes, data: st.DataObject) -> None:
    n = len(parent)
    group = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)), np.int32)
    rows = np.flatnonzero(group >= 0)
    expected = [any(group[a] == group[row] for a in above(parent, int(row))[1:]) for row in rows]
    assert inside_own_group(parent, group, rows).tolist() == expected


def test_a_tree_as_deep_as_it_has_rows() -> None:
    parent = np.arange(-1, 20_000 - 1, dtype=np.int32)
    assert subtotals(parent, np.ones(20_000, np.int64)).tolist() == list(range(20_000, 0, -1))
    group = np.arange(20_000, dtype=np.int32) % 7
    assert np.flatnonzero(~inside_own_group(parent, group, np.arange(20_000))).tolist() == list(range(7))
