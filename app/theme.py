"""The look of the window: palette, style sheet and fonts of the theme in use.

`apply` once at start; after that the theme follows the system, or the user's
choice, and `changed` tells widgets that paint by themselves.
"""

from __future__ import annotations

import os

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication

from app.style import MONO, sheet
from app.tokens import DARK, LIGHT, Tokens

MODES = ("system", "light", "dark")
STYLE = ("-style", "Fusion")  # arguments of QApplication: setStyle would cost the first paint 10 ms
_SANS = ["Inter", "Segoe UI", "SF Pro Text", "Noto Sans", "DejaVu Sans"]


class _Theme(QObject):
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.mode = "system"
        self.tokens = DARK
        self.applied: Tokens | None = None
        self.following = False

    def follow(self) -> None:
        """The system's scheme has changed, or the mode."""
        if isinstance(app := QApplication.instance(), QApplication):
            _dress(app)


_theme = _Theme()
changed = _theme.changed


def tokens() -> Tokens:
    """The colours in use."""
    return _theme.tokens


def mode() -> str:
    """What the user chose: system, light or dark."""
    return _theme.mode


def apply(app: QApplication, mode: str = "system") -> None:
    """Dress the application, which is started with `STYLE`; call again to change the mode."""
    _theme.mode = mode if mode in MODES else "system"
    if not _theme.following:
        app.setFont(font(13))
        app.styleHints().colorSchemeChanged.connect(_theme.follow)
        _theme.following = True
    if _theme.mode == "system":
        app.styleHints().unsetColorScheme()
    else:  # the frames of windows that the system draws
        schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        app.styleHints().setColorScheme(schemes[_theme.mode])
    _dress(app)


def _dress(app: QApplication) -> None:
    scheme = app.styleHints().colorScheme()
    dark = _theme.mode == "dark" or (_theme.mode == "system" and scheme != Qt.ColorScheme.Light)
    chosen = DARK if dark else LIGHT
    if _theme.applied is chosen:
        return
    _theme.tokens = _theme.applied = chosen
    app.setPalette(_palette(chosen))
    app.setStyleSheet(sheet(chosen))
    _theme.changed.emit()


def _palette(t: Tokens) -> QPalette:
    """The colours as Qt knows them, so that dialogs, menus and tooltips follow without rules of their own."""
    palette = QPalette()
    role = QPalette.ColorRole
    for where, colour in (
        (role.Window, t.raised),
        (role.WindowText, t.t1),
        (role.Base, t.inset),
        (role.AlternateBase, t.base),
        (role.Text, t.t1),
        (role.Button, t.raised),
        (role.ButtonText, t.t1),
        (role.BrightText, t.err),
        (role.Highlight, t.sel),
        (role.HighlightedText, t.t1),
        (role.ToolTipBase, t.raised),
        (role.ToolTipText, t.t1),
        (role.PlaceholderText, t.t3),
        (role.Link, t.acc),
        (role.LinkVisited, t.acc),
        (role.Light, t.line2),
        (role.Midlight, t.line),
        (role.Mid, t.line2),
        (role.Dark, t.line),
        (role.Shadow, t.line),
        (role.Accent, t.accfill),
    ):
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(t.dis))
    return palette


def font(size: int = 13, weight: int = 400, mono: bool = False) -> QFont:
    """A font of `size` logical pixels with figures of equal width."""
    result = QFont()
    result.setFamilies(list(MONO) if mono else _SANS)
    result.setStyleHint(QFont.StyleHint.Monospace if mono else QFont.StyleHint.SansSerif)
    result.setPixelSize(size)
    result.setHintingPreference(QFont.HintingPreference.PreferNoHinting)  # shapes and widths at every scale
    result.setWeight(QFont.Weight(weight))
    result.setFeature(QFont.Tag("tnum"), 1)
    if mono:
        result.setFeature(QFont.Tag("calt"), 0)  # "--" and "!=" stay the characters that were typed
    return result


def font_in_use(mono: bool = False) -> str:
    """The family that the system had."""
    from PySide6.QtGui import QFontInfo

    return QFontInfo(font(mono=mono)).family()


def colour(name: str) -> QColor:
    """A token's colour, or the colour `#rrggbb` itself."""
    return QColor(name if name.startswith("#") else getattr(_theme.tokens, name))


def duration(milliseconds: int) -> int:
    """The length of a motion: 0 where the user wants none."""
    return 0 if reduced_motion() else milliseconds


def reduced_motion() -> bool:
    """Whether the system, or STEPSCOPE_REDUCED_MOTION, asks for no motion."""
    if os.environ.get("STEPSCOPE_REDUCED_MOTION"):
        return True
    app = QApplication.instance()
    return isinstance(app, QApplication) and not app.isEffectEnabled(Qt.UIEffect.UI_General)
