"""Rows of spans as pixels: an array that becomes one image a frame. Free of Qt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.timeline.lod import Columns, Flags
from app.timeline.spans import Ints

Pixels = NDArray[np.uint32]  # premultiplied ARGB
PLAIN, HATCHED, PALE, DIM = range(4)  # how a colour is drawn
VARIANTS = 4


@dataclass(frozen=True, eq=False)
class Look:
    """The colours of a theme on a screen.

    `tiles[y]` holds line y of every tile side by side: first the empty one, then that of
    each colour in its variants. `edge`: of each of them; `frame`: whether spans have one all around.
    """

    tiles: Pixels  # [tile, styles * tile]
    edge: Pixels  # [styles]
    frame: bool
    tile: int


def styles(columns: Columns, pale: bool, lit: Flags | None = None) -> NDArray[np.int64]:
    """How each column looks: a place among the tiles. `lit`: columns that a search found; others are dim."""
    variant = np.full(len(columns.colour), PALE) if pale else np.where(columns.hatched, HATCHED, PLAIN)
    if lit is not None:
        variant = np.where(lit, variant, DIM)
    found = columns.colour.astype(np.int64)
    return np.where(found < 0, 0, 1 + found * VARIANTS + variant)


def draw(
    pixels: Pixels,
    y0: int,
    y1: int,
    columns: Columns,
    style: NDArray[np.int64],
    look: Look,
    framed: bool = False,
) -> None:
    """Fill the lines y0 to y1 of an image with a row; hatches are fixed to the image."""
    y0, y1 = max(y0, 0), min(y1, len(pixels))
    if y1 <= y0 or not (columns.colour >= 0).any():
        return
    w = len(style)
    lines = look.tiles.take(style * look.tile + np.arange(w) % look.tile, axis=1)
    pixels[y0:y1] = lines[np.arange(y0, y1) % look.tile]
    if not len(columns.boxes):
        return
    edge = look.edge[style]
    first = columns.boxes[:, 1]
    first = first[(first >= 0) & (first < w)]
    pixels[y0:y1, first] = edge[first]
    if look.frame or framed:
        last = columns.boxes[:, 2]
        last = last[(last >= 0) & (last < w)]
        pixels[y0:y1, last] = edge[last]
        for y in (y0, y1 - 1):
            pixels[y] = np.where(columns.edged, edge, pixels[y])


def levels(t: Ints, v: NDArray[np.float64], edge: Ints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest value in each pixel column of a line of steps; NaN where nothing is known."""
    w = len(edge) - 1
    if not len(t):
        none = np.full(w, np.nan)
        return none, none
    before = np.searchsorted(t, edge, "left")
    entering = np.where(before[:-1] > 0, v[np.maximum(before[:-1] - 1, 0)], np.nan)
    a, b = int(before[0]), int(before[-1])
    inside = v[a:b]
    low, high = entering.copy(), entering.copy()
    some = np.flatnonzero(before[1:] > before[:-1])
    if len(some):
        at = before[:-1][some] - a
        low[some] = np.fmin(np.fmin.reduceat(inside, at), entering[some])
        high[some] = np.fmax(np.fmax.reduceat(inside, at), entering[some])
    ended = edge[:-1] >= t[-1]  # nothing is known after the last one
    return np.where(ended, np.nan, low), np.where(ended, np.nan, high)


def draw_line(
    pixels: Pixels,
    y0: int,
    y1: int,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    bottom: float,
    top: float,
    ink: int,
    fill: int,
    thick: int = 1,
) -> None:
    """A line of steps between the lines y0 and y1 of an image, filled to the foot unless `fill` is 0."""
    a, b = max(y0, 0), min(y1, len(pixels))
    if b <= a or top <= bottom:
        return
    known = np.isfinite(low)
    if not known.any():
        return
    scale = (y1 - 1 - y0) / (top - bottom)
    first = np.where(known, y1 - 1 - np.rint((np.clip(high, bottom, top) - bottom) * scale), y1)
    last = np.where(known, y1 - 1 - np.rint((np.clip(low, bottom, top) - bottom) * scale), y1 - 1)
    y = np.arange(a, b)[:, None]
    on = (y >= first) & (y < last + thick) & known
    part = pixels[a:b]
    if fill:
        under = (y >= last) & known & ~on
        part[under & (part == 0)] = fill
    part[on] = ink
