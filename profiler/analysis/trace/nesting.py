"""Sums over what lies inside a row, and rows inside others of their kind: however deep the tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from profiler.analysis.trace.owners import levels
from profiler.trace.model import Codes, Flags, Ints


def subtotals(parent: Codes, values: Ints) -> Ints:
    """The value of each row and of all rows below it: int64[n]."""
    tree = levels(parent)
    total = values[tree.order].astype(np.int64)
    for low, high in reversed(list(pairwise(tree.edges[1:]))):
        np.add.at(total, tree.parent[low:high], total[low:high])
    result = np.empty_like(total)
    result[tree.order] = total
    return result


def spans(parent: Codes) -> tuple[Ints, Ints]:
    """Places such that what is inside a row has those from its own on: (own place, end), int64[n] each."""
    tree, size = levels(parent), subtotals(parent, np.ones(len(parent), np.int64))
    siblings = np.argsort(parent, kind="stable")
    before = np.cumsum(size[siblings]) - size[siblings]
    first = np.flatnonzero(np.concatenate(([True], np.diff(parent[siblings]) != 0)))[: len(parent)]
    before -= np.repeat(before[first], np.diff(np.append(first, len(parent))))
    place = np.empty(len(parent), np.int64)
    place[siblings] = before
    place = place[tree.order]
    for low, high in pairwise(tree.edges[1:]):
        place[low:high] += place[tree.parent[low:high]] + 1
    own = np.empty_like(place)
    own[tree.order] = place
    return own, own + size


def inside_own_group(parent: Codes, group: Codes, rows: Ints) -> Flags:
    """Which rows lie, at any depth, in one of `rows` of their own group (not negative): bool[len(rows)]."""
    place, end = (values[rows] for values in spans(parent))
    apart = group[rows].astype(np.int64) * (len(parent) + 1)  # so that no group reaches into the next
    order = np.argsort(apart + place)
    reach = np.maximum.accumulate((apart + end)[order])
    inside = np.zeros(len(rows), np.bool_)
    inside[order[1:]] = reach[:-1] > (apart + place)[order[1:]]
    return inside
