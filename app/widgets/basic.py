"""Labels with a role, hairlines, surfaces and rows: what every screen is put together from."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.tokens import PADDING, PANE_HEADER


def label(text: str = "", role: str = "body", tone: str = "", parent: QWidget | None = None) -> QLabel:
    """A label in one of the text roles of the style sheet. Plain text, never markup."""
    result = QLabel(text, parent)
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setProperty("role", role)
    if tone:
        result.setProperty("tone", tone)
    return result


def chip(text: str, kind: str = "plain", parent: QWidget | None = None) -> QLabel:
    """A small framed word: kind plain, tag, key, ok, warn, err or acc."""
    result = QLabel(text, parent)
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setProperty("chip", kind)
    result.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    return result


def tip(text: str) -> str:
    """`text` for a tool tip. Qt takes what looks like HTML for such, and reads the files that it names."""
    if not GuiQt.mightBeRichText(text):
        return text
    return f"<span>{html.escape(text).replace(chr(10), '<br>')}</span>"


def restyle(widget: QWidget, **properties: object) -> None:
    """Set dynamic properties that the style sheet looks at, and apply it where one changed."""
    changed = [(name, value) for name, value in properties.items() if widget.property(name) != value]
    for name, value in changed:
        widget.setProperty(name, value)
    if changed:
        widget.style().unpolish(widget)
        widget.style().polish(widget)
        widget.update()


class ElidedLabel(QLabel):
    """A label that shortens its text to the width it gets; the tooltip has the whole."""

    def __init__(
        self,
        text: str = "",
        role: str = "sub",
        parent: QWidget | None = None,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        super().__init__(parent)
        self._whole, self._mode = "", mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(16)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show this text instead."""
        self._whole = text
        self._elide()

    def whole_text(self) -> str:
        return self._whole

    def _elide(self) -> None:
        shown = self.fontMetrics().elidedText(self._whole, self._mode, max(0, self.contentsRect().width()))
        self.setText(shown)
        self.setToolTip(tip(self._whole) if shown != self._whole else "")
        self.setAccessibleName(self._whole)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._elide()


class Hairline(QWidget):
    """A line one device pixel thick, at every scale factor."""

    def __init__(self, vertical: bool = False, colour: str = "line", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._vertical, self._colour = vertical, colour
        if vertical:
            self.setFixedWidth(1)
        else:
            self.setFixedHeight(1)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        dpr = self.devicePixelRatioF()
        thick = max(1, int(dpr)) / dpr
        area = QRectF(0, 0, thick, self.height()) if self._vertical else QRectF(0, 0, self.width(), thick)
        painter = QPainter(self)
        painter.fillRect(area, theme.colour(self._colour))
        painter.end()


class Surface(QFrame):
    """A plain widget on one of the surfaces of the design, with a layout that has no gaps."""

    def __init__(self, surface: str = "raised", vertical: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("surface", surface)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.box: QBoxLayout = QVBoxLayout(self) if vertical else QHBoxLayout(self)
        self.box.setContentsMargins(0, 0, 0, 0)
        self.box.setSpacing(0)


class PaneHeader(QWidget):
    """The 32 px head of a pane: title, a quiet note, and what belongs at its right end."""

    def __init__(self, title: str, note: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(PANE_HEADER)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        line = QWidget()
        self.row = QHBoxLayout(line)
        self.row.setContentsMargins(PADDING, 0, PADDING, 0)
        self.row.setSpacing(8)
        self.title = label(title, "title")
        self.note = label(note, "hint")
        self.row.addWidget(self.title)
        self.row.addWidget(self.note)
        self.row.addStretch(1)
        box.addWidget(line, 1)
        box.addWidget(Hairline())


def strip(line: QHBoxLayout, height: int, surface: str = "raised") -> Surface:
    """A horizontal layout over the full height of a bar, with a hairline at its foot."""
    bar = Surface(surface)
    bar.setFixedHeight(height)
    inner = QWidget()  # takes the height that a bare layout of fixed widgets would not
    inner.setLayout(line)
    bar.box.addWidget(inner, 1)
    bar.box.addWidget(Hairline())
    return bar


def row(
    *widgets: QWidget | int | None, spacing: int = 8, margins: Sequence[int] = (0, 0, 0, 0)
) -> QHBoxLayout:
    """A horizontal layout: a number is a fixed space, None takes what is left."""
    box = QHBoxLayout()
    box.setSpacing(spacing)
    box.setContentsMargins(*margins)
    for widget in widgets:
        if widget is None:
            box.addStretch(1)
        elif isinstance(widget, int):
            box.addSpacing(widget)
        else:
            box.addWidget(widget)
    return box
