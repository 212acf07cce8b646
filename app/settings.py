"""What the window remembers between two starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QRect, QSettings, QStandardPaths

RECENT = 10


class Settings:
    """Geometry, theme, recent files and the last entries, in one file of the user's configuration."""

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            place = QStandardPaths.StandardLocation.GenericConfigLocation
            path = Path(QStandardPaths.writableLocation(place)) / "stepscope" / "window.ini"
        self._store = QSettings(str(path), QSettings.Format.IniFormat)

    def get(self, key: str, default: Any = None) -> Any:
        """A stored value; `default` when there is none. Texts and lists come back as written."""
        return self._store.value(key, default)

    def set(self, key: str, value: Any) -> None:
        """Store a value."""
        self._store.setValue(key, value)

    def texts(self, key: str) -> list[str]:
        """A stored list of texts."""
        value = self._store.value(key, [])
        if isinstance(value, str):  # a list of one comes back bare
            return [value] if value else []
        return [str(v) for v in value] if isinstance(value, list) else []

    @property
    def theme(self) -> str:
        return str(self.get("theme", "system"))

    @theme.setter
    def theme(self, mode: str) -> None:
        self.set("theme", mode)

    @property
    def geometry(self) -> QRect | None:
        """Where the window was, whether or not that place still exists."""
        value = self.get("geometry")
        return value if isinstance(value, QRect) and value.isValid() else None

    @geometry.setter
    def geometry(self, where: QRect) -> None:
        self.set("geometry", where)

    def state(self, key: str) -> QByteArray | None:
        """The stored state of a splitter."""
        value = self.get(key)
        return value if isinstance(value, QByteArray) else None

    def remember(self, key: str, text: str) -> None:
        """Put a text first in a list of recent ones."""
        self.set(key, [text, *(t for t in self.texts(key) if t != text)][:RECENT])

    def forget_layout(self) -> None:
        """Drop geometry and the sizes of panes."""
        for key in ("geometry", "maximized", "launch/splitter", "live/splitter"):
            self._store.remove(key)

    def sync(self) -> None:
        self._store.sync()


def on_screen(wanted: QRect, screens: Sequence[QRect]) -> QRect:
    """`wanted`, or the same size brought back where no screen shows its title bar.

    `screens` are the usable areas, the primary one first.
    """
    if not screens:
        return wanted
    bar = QRect(wanted.x(), wanted.y(), wanted.width(), 32)
    for screen in screens:
        seen = screen.intersected(bar)
        if seen.width() >= 120 and seen.height() >= 16:
            return wanted
    home = screens[0]
    size = wanted.size().boundedTo(home.size())
    result = QRect(home.topLeft(), size)
    result.moveCenter(home.center())
    return result
