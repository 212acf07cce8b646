"""Sums over what lies inside a row, and rows inside others of their kind, however deep the tree."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from profiler.analysis.trace.code.owners import levels
from profiler.trace.model import Codes, Flags, Ints

_OF_TWO: dict[np.ufunc, Callable[[int, int], int]] = {np.add: operator.add, np.maximum: max}


def subtotals(parent: Codes, values: Ints | Flags) -> Ints:
    """The value of each row and of all rows below it: int64[n]."""
    return _upwards(parent, values.astype(np.int64), np.add)


def inside_own_group(parent: Codes, lane: Codes, group: Codes, rows: Ints) -> Flags:
    """Which rows lie, at any depth, in one of `rows` of their own group (not negative): bool[len(rows)].

    Rows of a lane are sorted so that what is inside a row follows it, before what is not.
    """
    last = _upwards(parent, np.arange(len(parent)), np.maximum)[rows]
    key = group[rows].astype(np.int64) * (int(lane.max(initial=0)) + 1) + lane[rows]
    if key.max(initial=0) < 1 << 16:
        order = np.argsort(key.astype(np.uint16), kind="stable")  # sorted without comparing
    else:
        order = np.argsort(key, kind="stable")
    apart = key[order] * len(parent)  # so that no group reaches into the next
    reach = np.maximum.accumulate(last[order] + apart)
    inside = np.zeros(len(rows), np.bool_)
    inside[order[1:]] = reach[:-1] >= (rows[order] + apart)[1:]
    return inside


def _upwards(parent: Codes, values: Ints, join: np.ufunc) -> Ints:
    """Each row's value joined with those of all rows below it."""
    tree = levels(parent)
    joined = values[tree.order]
    if tree.deep:
        _one_by_one(tree.parent.data, joined.data, _OF_TWO[join])
    else:
        for low, high in reversed(list(pairwise(tree.edges[1:]))):
            join.at(joined, tree.parent[low:high], joined[low:high].copy())  # of a view it would copy all
    result = np.empty_like(joined)
    result[tree.order] = joined
    return result


def _one_by_one(parent: memoryview, joined: memoryview, join: Callable[[int, int], int]) -> None:
    """The same in place for a tree of many depths with few rows each; parents come first."""
    for row in range(len(parent) - 1, -1, -1):
        if (outer := parent[row]) >= 0:
            joined[outer] = join(joined[outer], joined[row])
