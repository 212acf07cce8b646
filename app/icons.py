"""Line icons from assets/icons, tinted with a colour of the theme when they are drawn."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QAbstractButton, QWidget

from app import theme
from profiler.paths import ASSETS

FOLDER = ASSETS / "icons"


@lru_cache(maxsize=256)
def _source(name: str) -> bytes:
    return (FOLDER / f"{name}.svg").read_bytes()


@lru_cache(maxsize=1024)
def _render(name: str, colour: str, size: int, dpr: float) -> QPixmap:
    from PySide6.QtSvg import QSvgRenderer

    svg = _source(name).replace(b"currentColor", colour.encode())
    renderer = QSvgRenderer(QByteArray(svg))
    side = max(1, round(size * dpr))
    pixmap = QPixmap(side, side)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, side, side))
    painter.end()
    pixmap.setDevicePixelRatio(dpr)
    return pixmap


def pixmap(name: str, colour: str = "t2", size: int = 20, dpr: float = 1.0) -> QPixmap:
    """The icon in the colour of a token (or `#rrggbb`), `size` logical pixels square."""
    return _render(name, theme.colour(colour).name(), size, dpr)


def icon(name: str, colour: str = "t2", size: int = 16, disabled: str = "dis") -> QIcon:
    """The icon for buttons and menus, at every screen's scale. See `tint` for one that follows the theme."""
    result = QIcon()
    for dpr in sorted({1.0, *(screen.devicePixelRatio() for screen in QGuiApplication.screens())}):
        result.addPixmap(pixmap(name, colour, size, dpr))
        result.addPixmap(pixmap(name, disabled, size, dpr), QIcon.Mode.Disabled)
    return result


class IconLabel(QWidget):
    """An icon beside a word."""

    def __init__(self, name: str, colour: str = "t3", size: int = 16, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name, self._colour, self._size = name, colour, size
        self.setFixedSize(QSize(size, size))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def show_icon(self, name: str, colour: str) -> None:
        """Another icon in another colour."""
        self._name, self._colour = name, colour
        self.update()

    def paintEvent(self, event: object) -> None:
        painter = QPainter(self)
        painter.drawPixmap(0, 0, pixmap(self._name, self._colour, self._size, self.devicePixelRatio()))
        painter.end()


class _Tint(QObject):
    """Renews a button's icon with the theme; lives and dies with the button."""

    def __init__(self, button: QAbstractButton, name: str, colour: str, size: int) -> None:
        super().__init__(button)
        self._button, self._what = button, (name, colour, size)
        button.setIconSize(QSize(size, size))
        theme.changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        self._button.setIcon(icon(*self._what))


def tint(button: QAbstractButton, name: str, colour: str = "t2", size: int = 16) -> None:
    """Give a button an icon that follows the theme."""
    _Tint(button, name, colour, size)
