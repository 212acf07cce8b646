"""Blocks and journal rows as numpy arrays. No file is trusted: what does not fit is a ValueError."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiler.run.codec import DELTA, FLOAT, HEADER, MAX_COLUMNS, MAX_ENTRIES, PLAIN

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

_LARGEST = MAX_COLUMNS * (HEADER.size + 8 * MAX_ENTRIES)


@dataclass(frozen=True, slots=True)
class Part:
    """Entries of a level as columns of equal length: times in ns; level 0: t0 is t1, low is high."""

    t0: Int64
    t1: Int64
    low: Float64
    high: Float64

    def __len__(self) -> int:
        return len(self.t0)

    def where(self, chosen: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Part:
        t0, low = self.t0[chosen], self.low[chosen]
        return Part(t0, t0 if self.t1 is self.t0 else self.t1[chosen],
                    low, low if self.high is self.low else self.high[chosen])

    def copy(self) -> Part:
        return Part(self.t0.copy(), self.t1.copy(), self.low.copy(), self.high.copy())


def join(parts: list[Part]) -> Part:
    """The entries of all parts, ordered by their first time."""
    if not parts:
        return Part(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    part = parts[0]
    if len(parts) > 1:
        t0, low = np.concatenate([p.t0 for p in parts]), np.concatenate([p.low for p in parts])
        samples = all(p.t1 is p.t0 and p.high is p.low for p in parts)  # half the memory
        part = Part(t0, t0 if samples else np.concatenate([p.t1 for p in parts]),
                    low, low if samples else np.concatenate([p.high for p in parts]))
    return part.where(np.argsort(part.t0, kind="stable")) if np.any(part.t0[1:] < part.t0[:-1]) else part


def block(level: int, n: int, data: bytes) -> Part:
    """The entries of a block of `n`. ValueError or zlib.error when it is damaged."""
    if not 0 < n <= MAX_ENTRIES:
        raise ValueError(f"a block of {n} entries")
    raw = inflate(data, _LARGEST)
    columns, where = [], 0
    for name in ("tv" if level == 0 else "ttvv"):
        column, where = _column(raw, where, n, times=name == "t")
        columns.append(column)
    if where != len(raw):
        raise ValueError("a block longer than its columns")
    times = [column.astype(np.int64) * 1000 for column in columns[: len(columns) // 2]]
    values = [_finite(column.astype(np.float64)) for column in columns[len(columns) // 2 :]]
    return Part(times[0], times[-1], values[0], values[-1])


def journal_row(n: int, data: bytes) -> tuple[npt.NDArray[np.uint32], Int64, Float64]:
    """Columns of a journal row: track ids, times in ns, values. ValueError when it is damaged."""
    if n < 0 or len(data) != n * 20:
        raise ValueError("a journal row of the wrong length")
    tracks = np.frombuffer(data, "<u4", n)
    times = np.frombuffer(data, "<i8", n, 4 * n).astype(np.int64) * 1000
    return tracks, times, _finite(np.frombuffer(data, "<f8", n, 12 * n).astype(np.float64))


def inflate(data: bytes, most: int) -> bytes:
    """Decompress to at most so many bytes. ValueError when there is more, or less than a whole stream."""
    stream = zlib.decompressobj()
    raw = stream.decompress(data, most)
    if not stream.eof:
        raise ValueError("compressed data of the wrong length")
    return raw


def _finite(values: Float64) -> Float64:
    """What a writer promises: a value that is not finite is missing."""
    if not np.isfinite(values).all():
        raise ValueError("a sample that is no number")
    return values


def _column(raw: bytes, where: int, n: int, times: bool) -> tuple[npt.NDArray, int]:
    """The column of `n` items that begins at `where`, and where the next begins."""
    if len(raw) < where + HEADER.size:
        raise ValueError("a block without its header")
    kind, width, _, scale, first, offset = HEADER.unpack_from(raw, where)
    where += HEADER.size
    if width not in (0, 1, 2, 4, 8) or kind not in (PLAIN, DELTA, FLOAT) or not scale:
        raise ValueError("a block with an unknown packing")
    count = n - 1 if kind == DELTA else n
    end = where + count * width
    if end > len(raw) or (kind == FLOAT and (width != 8 or times)):
        raise ValueError("a block shorter than its columns")
    if width:
        planes = np.frombuffer(raw, np.uint8, count * width, where).reshape(width, count)
        items = np.ascontiguousarray(planes.T).view(f"<u{width}").reshape(count)
    else:
        items = np.zeros(count, np.uint8)
    if kind == FLOAT:
        return items.view("<f8"), end
    # Differences wrap around in 64 bits, as they do in two's complement: no overflow error, no lost bit.
    whole = items.astype(np.uint64).view(np.int64) + np.int64(offset)
    if kind == DELTA:
        whole = np.cumsum(np.concatenate((np.array([first], np.int64), whole)))
    return (whole if times or scale == 1 else whole / scale), end
