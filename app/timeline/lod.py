"""What of a row a frame draws: one colour a pixel column, whatever the number of spans. Free of Qt.

The work is a few searches for the edges of the columns, so that a row of a million
spans costs as much as one of a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.timeline.spans import Ints, Row

Flags = NDArray[np.bool_]
EDGED, HATCHED = 3, 8  # px from which a span has an edge, and its hatch


@dataclass(frozen=True)
class Columns:
    """w pixel columns of one row.

    A column has a colour exactly where a span covers a part of its time: that which
    fills most of it. `boxes` are spans wide enough for an edge: place in the row, first
    and last column, which reach beyond [0, w) where the span does.
    """

    colour: NDArray[np.int16]  # place in COLOURS, -1: nothing
    hatched: Flags
    edged: Flags  # inside a box
    boxes: Ints  # int64[k, 3]


def edges(x0: float, ns_per_px: float, width: int) -> Ints:
    """Times of the width + 1 edges of the columns, ns. On a grid of whole pixels, which panning keeps."""
    first = round(x0 / ns_per_px)
    return np.rint((first + np.arange(width + 1)) * ns_per_px).astype(np.int64)


def columns(row: Row, edge: Ints, scale: float = 1.0) -> Columns:
    """The columns between rising `edge` (int64[w + 1], ns). `scale`: device pixels in a logical one."""
    w = len(edge) - 1
    if not len(row):
        none = np.zeros(w, np.bool_)
        return Columns(np.full(w, -1, np.int16), none, none, np.zeros((0, 3), np.int64))
    before = np.searchsorted(row.start, edge)  # spans that begin before each edge
    last = np.maximum(before - 1, 0)
    crossing = (before > 0) & (row.end[last] > edge)  # the one that goes on over it
    covered = (before[1:] - before[:-1] + crossing[:-1]) > 0
    if len(row.palette) == 1:
        best = np.zeros(w, np.int64)
    else:
        filled = row.filled[before]
        at = np.flatnonzero(crossing)
        filled[at, row.code[last[at]]] -= row.end[last[at]] - edge[at]
        best = np.argmax(filled[1:] - filled[:-1], axis=1)
    colour = np.where(covered, row.palette[best].astype(np.int16), np.int16(-1))
    spans = last[crossing]
    spans = spans[np.concatenate(([True], spans[1:] != spans[:-1]))[: len(spans)]]
    return Columns(colour, *_boxes(row, spans, edge, w, scale))


def _boxes(row: Row, spans: Ints, edge: Ints, w: int, scale: float) -> tuple[Flags, Flags, Ints]:
    """Of the spans that cross an edge those that are wide, and where they lie."""
    start, end = row.start[spans], row.end[spans]
    a = np.searchsorted(edge, start, "right") - 1
    b = np.searchsorted(edge, end - 1, "right") - 1
    wide = b - a + 1
    reach = int(HATCHED * scale) + 1
    wide = np.where((start < edge[0]) | (end > edge[-1]), np.maximum(wide, reach), wide)
    keep = wide >= EDGED * scale
    a, b, wide, spans = a[keep], b[keep], wide[keep], spans[keep]
    edged, hatched = np.zeros(w + 1, np.int64), np.zeros(w + 1, np.int64)
    first, past = np.maximum(a, 0), np.minimum(b + 1, w)
    for mark, chosen in ((edged, slice(None)), (hatched, wide >= HATCHED * scale)):
        np.add.at(mark, first[chosen], 1)
        np.add.at(mark, past[chosen], -1)
    return (np.cumsum(hatched)[:-1] > 0, np.cumsum(edged)[:-1] > 0, np.stack((spans, a, b), axis=1))


def marked(start: Ints, end: Ints, edge: Ints) -> Flags:
    """Which columns some of these spans (rising, disjoint) touch: bool[w]."""
    if not len(start):
        return np.zeros(len(edge) - 1, np.bool_)
    before = np.searchsorted(start, edge)
    last = np.maximum(before - 1, 0)
    crossing = (before > 0) & (end[last] > edge)
    result: Flags = (before[1:] - before[:-1] + crossing[:-1]) > 0
    return result
