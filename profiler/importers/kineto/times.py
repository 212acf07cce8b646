"""Microseconds in any spelling to integer nanoseconds, exactly."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from profiler.trace.model import Flags, Ints

_FAR_US = 4_000_000_000_000_000  # beyond it from the base int64 nanoseconds would overflow
_LONG_US = 1_000_000_000_000     # 12 days: no event is longer, and sums of many stay within int64
_LAST_US = 2**62 // 1000          # in 2116: no base lies beyond it
_FINE_US = 2**43                 # above it a double does not tell nanoseconds apart
UNUSABLE = np.iinfo(np.int64).min  # stands where there is no usable time


class InexactTimes(Exception):
    """The times are floats too large for nanoseconds: they are needed as text."""


class Clock:
    """Times of one file against its base, which is the median of the first times seen."""

    def __init__(self) -> None:
        self.base_us: int | None = None

    def starts(self, values: list[Any]) -> Ints:
        """int64 ns since `base_us`, UNUSABLE where a value is none. Raises InexactTimes."""
        if values and isinstance(values[0], Raw):
            return self._exact(values)
        column = _column(values)
        if column is None:
            return self._exact(values)
        if column.dtype.kind == "f" and len(column) and np.abs(column).max() > _FINE_US:
            raise InexactTimes
        if self.base_us is None:
            known = column[(column > -_LAST_US) & (column < _LAST_US)]
            self.base_us = int(np.median(known)) if len(known) else 0
        return _scaled(column - self.base_us, _FAR_US)

    def _exact(self, values: list[Any]) -> Ints:
        if self.base_us is not None and (column := _digits(values)) is not None:
            ns = column - self.base_us * 1000
            return np.where(np.abs(ns) <= _FAR_US * 1000, ns, UNUSABLE)
        absolute = [_exact_ns(_text(v)) for v in values]
        if self.base_us is None:
            known = sorted(a for a in absolute if a is not None and abs(a) < _LAST_US * 1000)
            self.base_us = known[len(known) // 2] // 1000 if known else 0
        base, far = self.base_us * 1000, _FAR_US * 1000
        return np.array([UNUSABLE if a is None or abs(a - base) > far else a - base for a in absolute],
                        np.int64)


def durations(values: list[Any]) -> Ints:
    """int64 ns, UNUSABLE where a value is none or too long to be one; negative ones stay."""
    column = _column(values)
    if column is not None:
        return _scaled(column, _LONG_US)
    far = _LONG_US * 1000
    exact = [_exact_ns(_text(v)) for v in values]
    return np.array([UNUSABLE if a is None or abs(a) > far else a for a in exact], np.int64)


def between(start: Any, end: Any) -> float | str | None:
    """Duration in us between two times in any spelling, for `durations`; None when one is none."""
    a, b = _exact_ns(_text(start)), _exact_ns(_text(end))
    return None if a is None or b is None else str(Decimal(b - a) / 1000)


def _column(values: list[Any]) -> NDArray[Any] | None:
    """Numbers as int64 or float64; None where texts or nothings are among them."""
    try:
        column = np.array(values)
    except (ValueError, OverflowError):
        return None
    return column if column.ndim == 1 and column.dtype.kind in "if" else None


def _scaled(us: NDArray[Any], far: int) -> Ints:
    near = np.abs(us) <= far  # false for what is no number
    if us.dtype.kind == "i":
        return np.where(near, us, 0) * 1000 if near.all() else np.where(near, us * 1000, UNUSABLE)
    ns = np.rint(np.where(near, us, 0) * 1000).astype(np.int64)
    return ns if near.all() else np.where(near, ns, UNUSABLE)


def _digits(values: list[Any]) -> Ints | None:
    """ns of times that are all written alike, with three decimals; None for any other."""
    if not values or not all(isinstance(v, Raw) for v in values):
        return None
    texts = np.array([bytes(v) for v in values])
    width = texts.itemsize
    if not 5 <= width <= 20:
        return None
    digits = texts.view(np.uint8).reshape(len(values), width) - ord("0")  # anything else wraps to above 9
    point, digits = digits[:, -4], np.delete(digits, width - 4, axis=1)
    if (point != (ord(".") - ord("0")) % 256).any() or (digits > 9).any() or (digits[:, 0] > 8).any():
        return None
    return digits.astype(np.int64) @ 10 ** np.arange(width - 2, -1, -1)


def _text(value: Any) -> str | None:
    if isinstance(value, Raw):
        return bytes(value).decode("ascii", "replace").strip('" ')
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return value.strip() if isinstance(value, str) else repr(value)


def _exact_ns(text: str | None) -> int | None:
    """A decimal number of us as ns, rounded to the nearest; None for what is no finite number."""
    if not text:
        return None
    try:
        if text[-4:-3] == ".":
            return int(text[:-4] + text[-3:])
        return int(text) * 1000
    except ValueError:
        pass
    try:
        value = Decimal(text)
        usual = value.is_finite() and value.adjusted() < 18
        return int((value * 1000).to_integral_value()) if usual else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def usable(start: Ints, duration: Ints) -> Flags:
    return (start != UNUSABLE) & (duration >= 0)
