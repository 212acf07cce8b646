"""The findings as a list of cards: rank, title, cost, prediction; and the test of each."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.diagnose.data import FindingData
from app.hatch import stage_brush
from app.widgets.badge import Badge
from app.widgets.button import Button
from app.widgets.paint import font, text_width, write

HEIGHT, SECOND, FLAG, LEFT = 88, 18, 10, 44  # SECOND: line of a title


class Card(QWidget):
    """One finding. `pressed` when it is chosen, `opened` when its place is asked for."""

    pressed = Signal()
    opened = Signal()
    verify_pressed = Signal()
    moved = Signal(int)  # up or down, by a key

    def __init__(self) -> None:
        super().__init__()
        self.data: FindingData | None = None
        self.chosen = False
        self._titles: tuple[str, ...] = ("",)
        self.setFixedHeight(HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.verify = Button("Verify", parent=self)
        self.verify.clicked.connect(self.verify_pressed)
        self.badge = Badge(self)
        theme.changed.connect(self.update)

    def show_data(self, data: FindingData, state: str, blocked: bool) -> None:
        """`state`: "", waiting or testing; `blocked`: no test can be started now."""
        self.data = data
        badge = (state, "acc") if state else _badge(data)
        self.badge.show_badge(badge)
        self.verify.setVisible(badge is None and data.testable)
        self.verify.setEnabled(not blocked)
        self.verify.setAccessibleName(f"Verify {data.title}")
        said = [data.cost, data.prediction, badge[0] if badge else ""]
        self.setAccessibleName(f"{data.rank}. {data.title}")
        self.setAccessibleDescription(", ".join(filter(None, said)))
        self._place()
        self.update()

    def choose(self, chosen: bool) -> None:
        if chosen is not self.chosen:
            self.chosen = chosen
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(384, HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place()

    def _place(self) -> None:
        """A title has two lines where one is not enough."""
        title = self.data.title if self.data is not None else ""
        self._titles = _folded(title, self.width() - LEFT - 16)
        more = SECOND * (len(self._titles) - 1)
        if self.height() != HEIGHT + more:
            self.setFixedHeight(HEIGHT + more)
        for widget, y in ((self.verify, HEIGHT + more - 34), (self.badge, HEIGHT + more - 30)):
            widget.ensurePolished()
            size = widget.sizeHint()
            widget.setGeometry(self.width() - 16 - size.width(), y, size.width(), size.height())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.opened.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_Home: -1000, Qt.Key.Key_End: 1000}
        if (step := steps.get(Qt.Key(event.key()))) is not None:
            self.moved.emit(step)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self.pressed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, data = QPainter(self), self.data
        ground = "sel" if self.chosen else "hover" if self.underMouse() else "raised"
        painter.fillRect(self.rect(), theme.colour(ground))
        down, more = self.height() - 1, self.height() - HEIGHT
        painter.fillRect(QRectF(0, down, self.width(), 1), theme.colour("line"))
        if data is not None:
            painter.fillRect(QRectF(0, 0, FLAG, down), stage_brush(data.stage, self.devicePixelRatioF()))
            write(painter, QRectF(FLAG + 10, 12, 20, 20), str(data.rank), "t3", 13)
            for k, title in enumerate(self._titles):
                self._line(painter, 12 + SECOND * k, title, "t1", 13, 600, self.width() - LEFT - 16)
            self._line(painter, 33 + more, data.cost, "t2", 12, 400, self.width() - LEFT - 16)
            taken = next((w for w in (self.badge, self.verify) if not w.isHidden()), None)
            room = (taken.x() if taken is not None else self.width() - 8) - LEFT - 8
            if data.prediction:
                start = next((k for k, c in enumerate(data.prediction) if c.isdigit()), 0)
                word, ratio = data.prediction[:start], data.prediction[start:]
                wide = text_width(word, 12)
                self._line(painter, 58 + more, word, "t2", 12, 400, room)
                self._line(painter, 58 + more, ratio, "t1", 12, 600, room - wide, LEFT + wide)
            else:
                self._line(painter, 58 + more, data.remedy or data.advice, "t2", 12, 400, room)
        if self.hasFocus():
            for box in _frame(self.rect().toRectF()):
                painter.fillRect(box, theme.colour("acc"))
        painter.end()

    def _line(self, painter: QPainter, y: float, text: str, colour: str, size: int, weight: int,
              room: float, left: float = LEFT) -> None:
        painter.setFont(font(size, weight))
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, max(0, int(room)) + 1)
        write(painter, QRectF(left, y, max(0.0, room), 20), shown, colour, size, weight)


def _folded(title: str, room: float) -> tuple[str, ...]:
    """In one line, or in two; what does not fit into the second is cut when it is drawn."""
    if text_width(title, 13, 600) <= room or " " not in title:
        return (title,)
    words = title.split(" ")
    count = len(words) - 1
    while count > 1 and text_width(" ".join(words[:count]), 13, 600) > room:
        count -= 1
    return " ".join(words[:count]), " ".join(words[count:])


def _badge(data: FindingData) -> tuple[str, str] | None:
    """1.84 x hit, of a finding that was tested."""
    ratios = data.ratios
    if not data.tested:
        return None
    word, kind = ratios.badge or ("no result", "plain")
    if ratios.measured is None:
        return word.lower(), kind
    return f"{ratios.measured[1]:.2f}\u00a0\u00d7 {word.lower()}", kind


def _frame(box: QRectF) -> tuple[QRectF, ...]:
    return (QRectF(0, 0, box.width(), 2), QRectF(0, box.height() - 2, box.width(), 2),
            QRectF(0, 0, 2, box.height()), QRectF(box.width() - 2, 0, 2, box.height()))


class Cards(QWidget):
    """All findings. `chosen` gives the key of one."""

    chosen = Signal(str)
    opened = Signal(str)
    verify_pressed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.cards: list[Card] = []
        self.key = ""
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(0)
        self.setAccessibleName("Findings")

    def show_data(self, findings: Sequence[FindingData], states: dict[str, str], blocked: bool) -> None:
        while len(self.cards) < len(findings):
            self._add()
        while len(self.cards) > len(findings):
            card = self.cards.pop()
            card.setParent(None)
            card.deleteLater()
        for card, data in zip(self.cards, findings, strict=True):
            card.show_data(data, states.get(data.key, ""), blocked)
        self.mark(self.key)

    def mark(self, key: str) -> None:
        """Show this one as chosen, without telling."""
        self.key = key
        for card in self.cards:
            card.choose(card.data is not None and card.data.key == key)

    def _add(self) -> None:
        card = Card()
        card.pressed.connect(lambda: self._tell(card, self.chosen))
        card.opened.connect(lambda: self._tell(card, self.opened))
        card.verify_pressed.connect(lambda: self._tell(card, self.verify_pressed))
        card.moved.connect(lambda step: self._move(card, step))
        self.cards.append(card)
        self._box.addWidget(card)

    def _tell(self, card: Card, signal: object) -> None:
        if card.data is not None:
            signal.emit(card.data.key)  # type: ignore[attr-defined]

    def _move(self, card: Card, step: int) -> None:
        at = min(len(self.cards) - 1, max(0, self.cards.index(card) + step))
        other = self.cards[at]
        other.setFocus(Qt.FocusReason.OtherFocusReason)
        self._tell(other, self.chosen)
