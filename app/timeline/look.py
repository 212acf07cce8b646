"""The colours of the theme as pixels, for `raster`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from app import theme
from app.hatch import TILE, stage_brush
from app.timeline.raster import DIM, HATCHED, PALE, VARIANTS, Look, Pixels
from app.timeline.spans import COLOURS
from app.tokens import DARK, LIGHT, Tokens

PALE_SHARE, DIM_SHARE = 0.42, 0.18  # of the fill, the rest is the ground


def pixel(colour: QColor) -> int:
    """Premultiplied ARGB."""
    a = colour.alpha()
    r, g, b = (round(c * a / 255) for c in (colour.red(), colour.green(), colour.blue()))
    return a << 24 | r << 16 | g << 8 | b


def mixed(one: str, other: str, share: float) -> QColor:
    """`share` of one colour, the rest of the other."""
    a, b = QColor(one), QColor(other)
    return QColor(
        *(
            round(x * share + y * (1 - share))
            for x, y in zip((a.red(), a.green(), a.blue()), (b.red(), b.green(), b.blue()))
        )
    )


def look(dpr: float) -> Look:
    """That of the theme in use on a screen of `dpr` device pixels per logical one."""
    return _look(theme.tokens().dark, dpr)


def fill_of(stage: str, pale: bool) -> QColor:
    """The plain ground of a span, for a plate under its name."""
    tokens = theme.tokens()
    fill = tokens.stages[stage].fill
    return mixed(fill, tokens.raised, PALE_SHARE) if pale else QColor(fill)


@lru_cache(maxsize=8)
def _look(dark: bool, dpr: float) -> Look:
    tokens = DARK if dark else LIGHT
    size = max(1, round(TILE * dpr))
    tiles = np.zeros((size, (1 + len(COLOURS) * VARIANTS) * size), np.uint32)
    edge = np.zeros(1 + len(COLOURS) * VARIANTS, np.uint32)
    for k, stage in enumerate(COLOURS):
        for variant in range(VARIANTS):
            style = 1 + k * VARIANTS + variant
            tiles[:, style * size : (style + 1) * size] = _tile(tokens, stage, variant, size, dpr)
            edge[style] = _edge(tokens, stage, variant)
    return Look(tiles, edge, not dark, size)


def _tile(tokens: Tokens, stage: str, variant: int, size: int, dpr: float) -> Pixels | np.uint32:
    fill = tokens.stages[stage].fill
    if variant == HATCHED:
        return _hatched(stage, size, dpr)
    if variant in (PALE, DIM):
        return np.uint32(pixel(mixed(fill, tokens.raised, PALE_SHARE if variant == PALE else DIM_SHARE)))
    return np.uint32(pixel(QColor(fill)))


def _hatched(stage: str, size: int, dpr: float) -> Pixels:
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(dpr)
    painter = QPainter(image)
    painter.fillRect(QRectF(0, 0, TILE + 1, TILE + 1), stage_brush(stage, dpr))
    painter.end()
    return np.frombuffer(image.constBits(), np.uint32).reshape(size, size).copy()


def _edge(tokens: Tokens, stage: str, variant: int) -> int:
    found = tokens.stages[stage]
    if variant == DIM:
        return pixel(mixed(found.edge, tokens.raised, 0.35))
    if variant == PALE:
        return pixel(mixed(found.edge, tokens.raised, 0.7))
    return pixel(mixed(found.fill, "#080A0D", 0.5) if tokens.dark else QColor(found.edge))


def image_of(pixels: Pixels, dpr: float) -> QImage:
    """The array as an image that shares its memory: draw it before the array goes."""
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(dpr)
    return image
