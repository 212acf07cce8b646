"""How the columns of a block are packed: whole numbers as small differences, byte planes, zlib.

A column is a header and byte planes. Values that are decimal fractions (what a
driver tells in mW or per cent) are stored as whole numbers with their scale,
others as they are. Both ways give back exactly what was put in.

    header of whole numbers  u8 kind = 0 or 1, u8 width, u16 0, u32 scale, i64 first, i64 offset
      kind 0: item = offset + plane value; kind 1: item[i] = item[i-1] + offset + plane value, item[0] = first
      value = item / scale
    header of floats         u8 kind = 2, u8 width = 8, and zeros; f64 bit patterns
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import islice
from operator import sub, truediv

HEADER = struct.Struct("<BBHIqq")
PLAIN, DELTA, FLOAT = 0, 1, 2
MAX_ENTRIES = 1 << 20  # in a block; a reader refuses more
MAX_COLUMNS = 4

_TYPES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SCALES = (1, 100, 1000, 1_000_000)
_EXACT = float(1 << 53)  # whole numbers up to here are exact in a float


def pack_block(columns: Sequence[bytes]) -> bytes:
    """The `data` of a block from its packed columns."""
    return zlib.compress(b"".join(columns), 1)


def pack_ints(items: Sequence[int], scale: int = 1) -> bytes:
    """A column of whole numbers within 63 bits, at least one."""
    low, high = min(items), max(items)
    kind, offset, spread, rest = PLAIN, low, high - low, items
    if spread and len(items) > 1:
        steps = list(map(sub, islice(items, 1, None), items))
        step = min(steps)
        if max(steps) - step < spread:
            kind, offset, spread, rest = DELTA, step, max(steps) - step, steps
    width = _width(spread)
    header = HEADER.pack(kind, width, 0, scale, items[0], offset)
    if not width:
        return header
    return header + _planes(array(_TYPES[width], [item - offset for item in rest]))


def pack_floats(values: Sequence[float]) -> bytes:
    """A column of finite floats, at least one."""
    for scale in _SCALES:
        if (scaled := _scaled(values, scale)) is not None:
            return pack_ints(scaled, scale)
    return HEADER.pack(FLOAT, 8, 0, 1, 0, 0) + _planes(array("d", values))


def journal_row(tracks: Sequence[int], times_us: Sequence[int], values: Sequence[float]) -> bytes:
    """The `data` of a journal row."""
    columns = array("I", tracks), array("q", times_us), array("d", values)
    if sys.byteorder == "big":
        for column in columns:
            column.byteswap()
    return b"".join(column.tobytes() for column in columns)


def _scaled(values: Sequence[float], scale: int) -> list[int] | None:
    """The values times `scale` where that gives whole numbers that divide back to the values."""
    if abs(values[0]) * scale > _EXACT or round(values[0] * scale) / scale != values[0]:
        return None  # most columns that do not fit are told by their first value
    if max(values) * scale > _EXACT or min(values) * scale < -_EXACT:
        return None
    scaled = [round(value * scale) for value in values]
    divisors = [scale] * len(scaled)
    return scaled if all(map(float.__eq__, map(truediv, scaled, divisors), values)) else None


def _width(spread: int) -> int:
    """Bytes an item takes."""
    if not spread:
        return 0
    needed = (spread.bit_length() + 7) // 8
    return needed if needed <= 2 else 4 if needed <= 4 else 8


def _planes(items: array) -> bytes:
    """First the lowest byte of every item, then the next, ...: equal bytes lie together for zlib."""
    if sys.byteorder == "big":
        items.byteswap()
    data = items.tobytes()
    return b"".join(data[i :: items.itemsize] for i in range(items.itemsize))
