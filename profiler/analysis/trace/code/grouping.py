"""Rows with equal keys, and sums, extremes and means over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from profiler.trace.model import Codes, Ints

Rows: TypeAlias = Ints | Codes
DENSE = 8  # a table of so many times the rows is faster than sorting them


def coded(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """Which rows have the same values in all columns: (first row of each group, int64[groups];
    group of each row, int64[n]). Groups are in the order of their values."""
    code = np.zeros(len(columns[0]), np.int64)
    groups = 1
    for column in columns:  # one number for all columns: sorting rows of several is many times slower
        one, distinct = _dense(column)
        code, groups = _dense(code * max(distinct, 1) + one)
    groups = groups if len(code) else 0
    first = np.zeros(groups, np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    return first, code


def _dense(values: NDArray[Any]) -> tuple[Ints, int]:
    """The place of each value among the distinct ones, and how many there are."""
    if not len(values):
        return np.zeros(0, np.int64), 0
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > DENSE * len(values) + 1000:
        distinct, place = np.unique(values, return_inverse=True)
        return place.reshape(-1), len(distinct)
    there = np.zeros(span, np.bool_)
    there[values - low] = True
    place = np.cumsum(there) - 1
    return place[values - low], int(place[-1]) + 1


def summed(code: Rows, values: NDArray[Any], groups: int) -> Ints:
    """Sum of the values of each group: int64[groups]. Exact below 2**53."""
    return np.bincount(code, values, minlength=groups).astype(np.int64)


def extremes(code: Rows, values: Ints, groups: int) -> tuple[Ints, Ints]:
    """Smallest and largest value of each group: int64[groups] each. Every group has a row."""
    if not groups:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(code, kind="stable")
    first = np.searchsorted(code[order], np.arange(groups))
    return np.minimum.reduceat(values[order], first), np.maximum.reduceat(values[order], first)


def weighted(code: Rows, values: NDArray[np.float64], weight: Ints, groups: int) -> list[float | None]:
    """Weighted mean of the known (finite) values of each group; None where none is known."""
    known = np.isfinite(values)
    whole = np.bincount(code[known], weight[known], minlength=groups)
    total = np.bincount(code[known], values[known] * weight[known], minlength=groups)
    return [t / w if w else None for t, w in zip(total.tolist(), whole.tolist(), strict=True)]


def weighted_mean(values: NDArray[np.float64], weight: Ints) -> float | None:
    """Mean of the known (finite) values; None where none is known."""
    return weighted(np.zeros(len(values), np.int64), values, weight, 1)[0]
