"""The line of code that a finding names, with its neighbours; Open shows it in the user's editor."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.diagnose.data import Code
from app.tokens import PADDING
from app.widgets.basic import ElidedLabel, Surface, label, row, tip
from app.widgets.button import Button
from app.widgets.paint import font

ROW, NUMBER = 20, 40  # px
_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_RIGHT, _LEFT = _MIDDLE | Qt.AlignmentFlag.AlignRight, _MIDDLE | Qt.AlignmentFlag.AlignLeft


class CodeView(Surface):
    """`open_pressed` with what is shown."""

    open_pressed = Signal(object)  # Code

    def __init__(self) -> None:
        super().__init__("raised")
        self.code: Code | None = None
        self.site = ElidedLabel("", "cell")
        self.site.setProperty("mono", "true")
        self.site.setProperty("tone", "acc")
        self.site.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._cost = label("", "hint")
        self.open = Button("Open", kind="link")
        self.open.clicked.connect(lambda: self.open_pressed.emit(self.code))
        self._lines = _Lines()
        head = row(label("Source line", "title"), margins=(PADDING, 6, PADDING, 6))
        head.addWidget(self.site, 1)
        head.addWidget(self._cost)
        head.addWidget(self.open)
        self.box.addLayout(head)
        self.box.addWidget(self._lines)
        self.box.addSpacing(8)

    def show_code(self, code: Code | None, cost: str) -> None:
        self.code = code
        self.setVisible(code is not None)
        if code is None:
            return
        name = code.site.replace("\\", "/").rpartition("/")[2]
        self.site.show_text(name)
        self.site.setToolTip(tip(code.site))
        self._cost.setText(code.note or (f"{cost} here" if any(c.isdigit() for c in cost) else ""))
        self.open.setText("Open" if code.path is not None else "Copy path")
        self.open.setAccessibleName(f"{self.open.text()} {name}")
        self._lines.setVisible(bool(code.lines))
        self._lines.show_code(code)


class _Lines(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._code = Code("")
        theme.changed.connect(self.update)

    def show_code(self, code: Code) -> None:
        self._code = code
        self.setFixedHeight(ROW * len(code.lines))
        self.setAccessibleName("\n".join(f"{number} {text}" for number, text in code.lines))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(font(12, 400, True))
        advance = painter.fontMetrics().horizontalAdvance("0")
        for k, (number, text) in enumerate(self._code.lines):
            box = QRectF(0, ROW * k, self.width(), ROW)
            named = number == self._code.line
            if named:
                painter.fillRect(box, theme.colour("sel"))
                painter.fillRect(QRectF(0, box.top(), 2, ROW), theme.colour("acc"))
            painter.setPen(theme.colour("t3"))
            right = PADDING + max(NUMBER - 16, advance * len(str(number)))
            painter.drawText(QRectF(0, box.top(), right, ROW), _RIGHT, str(number))
            painter.setPen(theme.colour("t1" if named else "t2"))
            painter.drawText(QRectF(right + 12, box.top(), self.width() - right - 20, ROW), _LEFT, text)
        painter.end()
