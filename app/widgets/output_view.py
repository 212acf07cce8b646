"""The output of the target: folded to its newest line, or a pane with all of it and a line to type into."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPropertyAnimation, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from app import theme
from app.icons import IconLabel
from app.tokens import PADDING
from app.widgets.basic import ElidedLabel, Hairline, Surface, chip, label
from app.widgets.button import Button
from app.widgets.terminal import Terminal
from profiler.units import format_count

BAR = 32
OPEN = 240  # px, when unfolded for the first time


class _Bar(Surface):
    """The folded form; a click anywhere on it unfolds."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__("chrome", vertical=False)
        self.setFixedHeight(BAR)
        self.box.setContentsMargins(PADDING, 0, PADDING, 0)
        self.box.setSpacing(10)
        self.chevron = IconLabel("right", "t1", 14)
        self.last = ElidedLabel("", "sub")
        self.last.setFont(theme.font(12, mono=True))
        self.last.setStyleSheet(f"font-family: '{theme.font_in_use(mono=True)}'")
        self.count = label("", "hint")
        for widget in (self.chevron, label("Output", "title")):
            self.box.addWidget(widget)
        self.box.addSpacing(4)
        self.box.addWidget(self.last, 1)
        self.box.addWidget(self.count)
        self.box.addWidget(chip("Ctrl+J", "key"))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Output")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and getattr(event, "key", int)() in (
                Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.clicked.emit()
            return True
        return super().event(event)


class _Text(QPlainTextEdit):
    """The lines, kept at the end as long as the reader has not scrolled away."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName("Output of the command")
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self._dress()
        theme.changed.connect(self._dress)

    def _dress(self) -> None:
        t = theme.tokens()
        family = theme.font_in_use(mono=True)
        self.setStyleSheet(
            f"QPlainTextEdit {{ background: {t.base}; color: {t.t2}; border: 0; border-radius: 0; "
            f"padding: 4px 12px; font-family: '{family}'; font-size: 12px; }}")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The end stays in view when it was."""
        at_end = self._at_end()
        super().resizeEvent(event)
        if at_end:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _at_end(self) -> bool:
        bar = self.verticalScrollBar()
        return bar.value() >= bar.maximum() - 2

    def show_lines(self, terminal: Terminal) -> None:
        """Replace what has changed."""
        bar = self.verticalScrollBar()
        at_end, place = self._at_end(), bar.value()
        cursor = QTextCursor(self.document())
        first = terminal.first_changed
        block = self.document().findBlockByNumber(first)
        if block.isValid():
            cursor.setPosition(block.position())
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.insertText("\n".join(terminal.lines[first:]))
        else:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText("\n" + "\n".join(terminal.lines[first:]))
        terminal.taken()
        bar.setValue(bar.maximum() if at_end else place)



class OutputView(QWidget):
    """`feed` what the target wrote. `typed` is what the user sends to it."""

    typed = Signal(str)
    opened = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.terminal = Terminal()
        self.open = False
        self._dirty = False
        self._bar = _Bar()
        self._text = _Text()
        self._line = QLineEdit()
        self._line.setPlaceholderText("Type a line for the command, Enter sends it")
        self._line.setAccessibleName("Input for the command")
        self._line.returnPressed.connect(self._send)
        self._send_button = Button("Send")
        self._send_button.clicked.connect(self._send)
        self._input = Surface("chrome")
        line = QHBoxLayout()
        line.setContentsMargins(PADDING, 6, PADDING, 6)
        line.setSpacing(8)
        line.addWidget(self._line, 1)
        line.addWidget(self._send_button)
        self._input.box.addWidget(Hairline())
        self._input.box.addLayout(line)
        self._body = QWidget()
        body = QVBoxLayout(self._body)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        body.addWidget(self._text, 1)
        body.addWidget(self._input)
        self._body.setMaximumHeight(0)
        self._body.hide()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(Hairline())
        box.addWidget(self._bar)
        box.addWidget(self._body, 1)
        self._bar.clicked.connect(self.toggle)
        self._fold = QPropertyAnimation(self._body, b"maximumHeight", self)
        self._fold.finished.connect(self._folded)
        self.set_input(False)

    def toggle(self) -> None:
        """Fold or unfold."""
        self.open = not self.open
        self._bar.chevron.show_icon("down" if self.open else "right", "t1")
        self._body.show()
        self._fold.stop()
        self._fold.setDuration(theme.duration(120))
        self._fold.setStartValue(self._body.height() if self._body.isVisible() and not self.open else 0)
        self._fold.setEndValue(OPEN if self.open else 0)
        self._fold.start()
        if self.open:
            self._show()
            if self._input.isVisibleTo(self):
                self._line.setFocus()
        self.opened.emit(self.open)

    def set_input(self, possible: bool) -> None:
        """Whether something reads what is typed."""
        self._input.setVisible(possible)

    def clear(self) -> None:
        self.terminal.clear()
        self._text.clear()
        self._show_bar()

    def feed(self, data: bytes) -> None:
        self.terminal.feed(data)
        self._dirty = True

    def refresh(self) -> None:
        """Show what has come since the last call; the caller decides how often."""
        if not self._dirty:
            return
        self._dirty = False
        self._show_bar()
        if self.open:
            self._show()

    def _show(self) -> None:
        self._text.show_lines(self.terminal)

    def _show_bar(self) -> None:
        count = self.terminal.count
        self._bar.last.show_text(self.terminal.last)
        lines = "1 line" if count == 1 else f"{format_count(count)} lines"
        self._bar.count.setText(lines if count else "")

    def _folded(self) -> None:
        if not self.open:
            self._body.hide()

    def _send(self) -> None:
        self.typed.emit(self._line.text() + "\n")
        self._line.clear()
