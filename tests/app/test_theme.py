"""Colours: enough contrast, a switch that reaches every widget, hatches that tell stages apart."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtGui import QColor, QFontMetrics, QPalette
from PySide6.QtWidgets import QApplication

from app import hatch, icons, theme
from app.tokens import DARK, LIGHT, Tokens

SURFACES = ("chrome", "base", "raised", "inset", "hover", "sel")
THEMES = pytest.mark.parametrize("t", [DARK, LIGHT], ids=["dark", "light"])


def luminance(colour: str) -> float:
    parts = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in QColor(colour).getRgbF()[:3]
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@THEMES
@pytest.mark.parametrize("name", ["t1", "t2", "t3", "acc", "ok", "warn", "err"])
def test_text_can_be_read_on_every_surface(t: Tokens, name: str) -> None:
    assert min(contrast(getattr(t, name), getattr(t, surface)) for surface in SURFACES) >= 4.5


@THEMES
@pytest.mark.parametrize(
    "name, tint", [("ok", "oktint"), ("warn", "warntint"), ("err", "errtint"), ("acc", "acctint")]
)
def test_text_can_be_read_on_its_tint(t: Tokens, name: str, tint: str) -> None:
    assert contrast(getattr(t, name), getattr(t, tint)) >= 4.5


@THEMES
def test_marks_can_be_seen(t: Tokens) -> None:
    for name in ("ctl", "m1", "m2", "m3"):
        assert contrast(getattr(t, name), t.raised) >= 3
    for stage in t.stages.values():
        assert contrast(stage.edge, t.raised) >= 4.5  # edges are text as well
        assert contrast(stage.ink, stage.fill) >= 4.5
        if t.dark:
            assert contrast(stage.fill, t.raised) >= 3
    assert contrast("#FFFFFF", t.accfill) >= 4.5


def test_switching_the_theme_reaches_the_palette(qapp: QApplication, dark: None) -> None:
    seen = []
    theme.changed.connect(lambda: seen.append(theme.tokens()))
    theme.apply(qapp, "light")
    assert seen == [LIGHT]
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == LIGHT.raised.lower()
    theme.apply(qapp, "light")  # nothing changes, nothing is told
    assert seen == [LIGHT]
    theme.apply(qapp, "dark")
    assert seen == [LIGHT, DARK]


def test_the_system_decides_until_the_user_does(qapp: QApplication, dark: None) -> None:
    theme.apply(qapp, "no such mode")
    assert theme.mode() == "system"
    theme.apply(qapp, "light")
    assert not theme.tokens().dark


def test_figures_are_equally_wide(qapp: QApplication, dark: None) -> None:
    metrics = QFontMetrics(theme.font(12))
    assert len({metrics.horizontalAdvance(digit * 4) for digit in "0123456789"}) == 1


def test_no_motion_where_none_is_wanted(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_REDUCED_MOTION", "1")
    assert theme.duration(120) == 0


@pytest.mark.parametrize("dpr", [1.0, 1.25, 2.0])
def test_patterns_differ_and_keep_their_size(qapp: QApplication, dark: None, dpr: float) -> None:
    brushes = {name: hatch.stage_brush(name, dpr) for name in DARK.stages}
    images = {name: brush.texture().toImage() for name, brush in brushes.items()}
    for (a, first), (b, second) in itertools.combinations(images.items(), 2):
        assert first != second, (a, b)
    tile = images["data"].width() * brushes["data"].transform().m11()
    assert tile == pytest.approx(hatch.TILE)


def test_every_icon_draws_something(qapp: QApplication, dark: None) -> None:
    for path in icons.FOLDER.glob("*.svg"):
        image = icons.pixmap(path.stem, "t1", 20, 1.0).toImage()
        assert any(image.pixelColor(x, y).alpha() for x in range(20) for y in range(20)), path.stem
