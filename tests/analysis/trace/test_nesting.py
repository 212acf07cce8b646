"""Sums and groups over random trees, against walking up row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.trace.code.nesting import inside_own_group, subtotals
from profiler.trace.model import NONE, Codes
from tests.analysis.trace.build import taken_as_deep


@st.composite
def trees(draw: st.DrawFn) -> tuple[Codes, Codes]:
    """Parents and lanes: a row lies in one of those that are still open on its lane, or in none."""
    parent: list[int] = []
    lanes = draw(st.lists(st.integers(0, 2), max_size=40))
    chains: dict[int, list[int]] = {}
    for row, lane in enumerate(lanes):
        chain = chains.setdefault(lane, [])
        del chain[draw(st.integers(0, len(chain))):]
        parent.append(chain[-1] if chain else NONE)
        chain.append(row)
    return np.array(parent, np.int32), np.array(lanes, np.int32)


def above(parent: Codes, row: int) -> list[int]:
    """The row and all above it."""
    found = []
    while row != NONE:
        found.append(row)
        row = int(parent[row])
    return found


@given(trees(), st.booleans())
def test_every_row_passes_its_value_to_all_above_it(tree: tuple[Codes, Codes], deep: bool) -> None:
    parent, _ = tree
    values = np.arange(len(parent), dtype=np.int64) ** 2 + 1
    expected = np.zeros(len(parent), np.int64)
    for row in range(len(parent)):
        expected[above(parent, row)] += values[row]
    with taken_as_deep(deep):
        assert subtotals(parent, values).tolist() == expected.tolist()


@given(trees(), st.data())
def test_inside_a_row_of_its_own_group(tree: tuple[Codes, Codes], data: st.DataObject) -> None:
    parent, lane = tree
    n = len(parent)
    group = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)), np.int32)
    rows = np.flatnonzero(group >= 0)
    expected = [any(group[a] == group[row] for a in above(parent, int(row))[1:]) for row in rows]
    assert inside_own_group(parent, lane, group, rows).tolist() == expected


def test_a_tree_as_deep_as_it_has_rows() -> None:
    parent = np.arange(-1, 200_000 - 1, dtype=np.int32)
    assert subtotals(parent, np.ones(200_000, np.int64)).tolist() == list(range(200_000, 0, -1))
    group = np.arange(200_000, dtype=np.int32) % 7
    inside = inside_own_group(parent, np.zeros(200_000, np.int32), group, np.arange(200_000))
    assert np.flatnonzero(~inside).tolist() == list(range(7))
