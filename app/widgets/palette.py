"""The command palette: type, choose, Enter. A child of the window over a scrim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app import icons, theme
from app.icons import IconLabel
from app.widgets.basic import Hairline, Surface, chip, label, row

WIDTH, HEIGHT, TOP = 672, 600, 96
_DATA = Qt.ItemDataRole.UserRole


@dataclass(frozen=True)
class Choice:
    """A line of the palette."""

    group: str
    text: str
    note: str
    icon: str
    key: str
    do: Callable[[], object]


def matches(choice: Choice, typed: str) -> int | None:
    """How well a choice fits, lower is better; None when it does not."""
    text, typed = choice.text.casefold(), typed.casefold().strip()
    if not typed:
        return 0
    at = text.find(typed)
    if at == 0:
        return 0
    if at > 0:
        return 1 if text[at - 1] == " " else 2
    return 3 if typed in choice.note.casefold() else None


class _Delegate(QStyledItemDelegate):
    """Icon, text with the matched letters marked, note, and the key at the right; groups have a head."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.typed = ""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(100, 32 if isinstance(index.data(_DATA), str) else 36)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        entry, area = index.data(_DATA), QRect(option.rect)
        middle = Qt.AlignmentFlag.AlignVCenter
        if isinstance(entry, str):
            painter.setFont(theme.font(11, 600))
            painter.setPen(theme.colour("t3"))
            painter.drawText(area.adjusted(18, 4, 0, 0), middle, entry)
            return
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, theme.colour("sel"))
            painter.fillRect(QRect(area.x(), area.y(), 2, area.height()), theme.colour("acc"))
        dpr = painter.device().devicePixelRatioF()
        painter.drawPixmap(area.x() + 18, area.y() + 10, icons.pixmap(entry.icon, "t2", 16, dpr))
        x = self._text(painter, area, entry.text)
        painter.setFont(theme.font(12))
        painter.setPen(theme.colour("t3"))
        right = area.right() - 16
        if entry.key:
            painter.setFont(theme.font(11))
            wide = painter.fontMetrics().horizontalAdvance(entry.key) + 10
            frame = QRectF(right - wide + 0.5, area.y() + 9.5, wide, 17)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(theme.colour("line2"))
            painter.drawRoundedRect(frame, 3, 3)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(theme.colour("t3"))
            painter.drawText(frame, Qt.AlignmentFlag.AlignCenter, entry.key)
            painter.setFont(theme.font(12))
            right -= wide + 16
        room = QRect(x + 12, area.y(), max(0, right - x - 12), area.height())
        note = painter.fontMetrics().elidedText(entry.note, Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, middle, note)

    def _text(self, painter: QPainter, area: QRect, text: str) -> int:
        """Draw the text with what was typed in the accent; returns where it ends."""
        at = text.casefold().find(self.typed.casefold()) if self.typed else -1
        end = at + len(self.typed)
        parts = [(text, False)] if at < 0 else [(text[:at], False), (text[at:end], True), (text[end:], False)]
        x = area.x() + 46
        for part, hit in parts:
            painter.setFont(theme.font(13, 600 if hit else 400))
            painter.setPen(theme.colour("acc" if hit else "t1"))
            painter.drawText(QRect(x, area.y(), 600, area.height()), Qt.AlignmentFlag.AlignVCenter, part)
            x += painter.fontMetrics().horizontalAdvance(part)
        return x


class Palette(QWidget):
    """Covers the window while it is open; a click beside it, or Esc, closes it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.hide()
        self._choices: Sequence[Choice] = ()
        self._back_to: QWidget | None = None
        self._card = Surface("popup", parent=self)
        self.field = QLineEdit()
        self.field.setProperty("bare", "true")
        self.field.setPlaceholderText("Commands, runs, settings")
        self.field.setAccessibleName("Command palette")
        self.field.textChanged.connect(self._filter)
        self.field.installEventFilter(self)
        self._count = label("", "hint")
        self._card.box.addLayout(
            row(IconLabel("search", "t2", 18), self.field, self._count, spacing=12, margins=(16, 12, 16, 12))
        )
        self._card.box.addWidget(Hairline())
        self.list = QListView()
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setAccessibleName("Results")
        self._model = QStandardItemModel(self)
        self._delegate = _Delegate(self.list)
        self.list.setModel(self._model)
        self.list.setItemDelegate(self._delegate)
        self.list.clicked.connect(lambda _index: self._run())
        self._card.box.addSpacing(4)
        self._card.box.addWidget(self.list, 1)
        self._card.box.addSpacing(4)
        self._card.box.addWidget(Hairline())
        self._card.box.addLayout(
            row(
                chip("Up", "key"),
                chip("Down", "key"),
                label("choose", "hint"),
                8,
                chip("Enter", "key"),
                label("run", "hint"),
                None,
                chip("Esc", "key"),
                label("close", "hint"),
                spacing=4,
                margins=(16, 8, 16, 8),
            )
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, TOP, 16, 16)
        layout.addWidget(self._card, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        window.installEventFilter(self)

    def open_over(self, choices: Sequence[Choice]) -> None:
        """Offer these."""
        self._choices = choices
        self._back_to = self.window().focusWidget()
        self.field.clear()
        self._filter("")
        self.show()
        self.raise_()
        self.field.setFocus()

    def dismiss(self) -> None:
        """Close, and give the focus back."""
        self.hide()
        if self._back_to is not None:
            self._back_to.setFocus()
            self._back_to = None

    def _fit(self) -> None:
        self.setGeometry(self.window().rect())
        rows = sum(self.list.sizeHintForRow(i) for i in range(self._model.rowCount()))
        frame = self._card.sizeHint().height() - self.list.sizeHint().height()
        height = min(HEIGHT, self.height() - TOP - 16, frame + rows + 8)
        self._card.setFixedSize(min(WIDTH, self.width() - 32), height)

    def _filter(self, typed: str) -> None:
        self._delegate.typed = typed.strip()
        self._model.clear()
        found = 0
        for group in dict.fromkeys(choice.group for choice in self._choices):
            ranked = [
                (rank, i, c)
                for i, c in enumerate(self._choices)
                if c.group == group and (rank := matches(c, typed)) is not None
            ]
            if not ranked:
                continue
            head = QStandardItem(group)
            head.setData(group, _DATA)
            head.setFlags(Qt.ItemFlag.NoItemFlags)
            self._model.appendRow(head)
            for _rank, _i, choice in sorted(ranked, key=lambda r: r[:2]):
                item = QStandardItem(choice.text)
                item.setData(choice, _DATA)
                self._model.appendRow(item)
                found += 1
        self._count.setText(f"{found} result{'' if found == 1 else 's'}" if found else "nothing found")
        if found:
            self.list.setCurrentIndex(self._model.index(1, 0))
        self._fit()

    def _move(self, step: int) -> None:
        at, rows = self.list.currentIndex().row() + step, self._model.rowCount()
        while 0 <= at < rows and isinstance(self._model.index(at, 0).data(_DATA), str):
            at += step
        if 0 <= at < rows:
            self.list.setCurrentIndex(self._model.index(at, 0))

    def _run(self) -> None:
        choice = self.list.currentIndex().data(_DATA)
        self.dismiss()
        if isinstance(choice, Choice):
            choice.do()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is not self.field:
            if event.type() == QEvent.Type.Resize and self.isVisible():
                self._fit()
            return False
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
            if key in steps:
                self._move(steps[Qt.Key(key)])
            elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._run()
            elif key == Qt.Key.Key_Escape:
                self.dismiss()
            else:
                return key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)
            return True
        return False

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._card.geometry().contains(event.position().toPoint()):
            self.dismiss()

    def paintEvent(self, event: QPaintEvent) -> None:
        dark = theme.tokens().dark
        scrim = QColor("#080A0D" if dark else "#14191F")
        scrim.setAlphaF(0.62 if dark else 0.28)
        painter = QPainter(self)
        painter.fillRect(self.rect(), scrim)
        painter.end()
