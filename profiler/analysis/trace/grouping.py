"""Rows with equal keys, and sums, extremes and means over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from profiler.trace.model import Codes, Ints

Rows: TypeAlias = Ints | Codes


def coded(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """Which rows have the same values in all columns: (first row of each group, int64[groups];
    group of each row, int64[n]). Groups are in the order of their values."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:  # one number for all columns: sorting rows of several is many times slower
        distinct, one = np.unique(column, return_inverse=True)
        code = np.unique(code * max(len(distinct), 1) + one.reshape(-1), return_inverse=True)[1].reshape(-1)
    groups = int(code.max()) + 1 if len(code) else 0
    first = np.zeros(groups, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    return first, code


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
