"""Fields of a form. The wheel scrolls the page and changes no value; a wrong entry stays as it was typed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QToolButton,
    QWidget,
)

from app.icons import tint
from app.widgets.basic import label, restyle, tip
from app.widgets.button import Segments

NBSP = "\u00a0"
SHORT = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}  # segments are narrow
MAX_SEGMENTS = 4


class NumberField(QAbstractSpinBox):
    """A number with arrows and its unit at the right. Anything can be typed; `error` says what is wrong."""

    changed = Signal()

    def __init__(
        self,
        value: float,
        unit: str = "",
        minimum: float | None = None,
        maximum: float | None = None,
        whole: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._minimum, self._maximum, self._whole = minimum, maximum, whole
        self._unit = label(unit, "hint", parent=self)
        self._unit.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._unit.setAccessibleName("")
        self.lineEdit().setTextMargins(6, 0, self._unit.sizeHint().width() + 4 if unit else 0, 0)
        self.lineEdit().textEdited.connect(lambda _text: self.changed.emit())
        self.editingFinished.connect(self._tidy)
        self.set_value(value)

    def set_value(self, value: float) -> None:
        self.lineEdit().setText(self._format(value))

    def value(self) -> int | float | None:
        """What is typed; None when it is no number of the kind."""
        text = self.lineEdit().text().replace(NBSP, "").replace(" ", "").replace("_", "")
        try:
            number = int(text) if self._whole else float(text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    def error(self) -> str:
        """Why the entry cannot be used, or nothing."""
        number = self.value()
        if number is None:
            return "a whole number is needed" if self._whole else "a number is needed"
        low, high = self._minimum, self._maximum
        if low is not None and number < low:
            return f"{self._format(low)} or more"
        if high is not None and number > high:
            return f"{self._format(high)} or less"
        return ""

    def _format(self, value: float) -> str:
        if self._whole or float(value).is_integer():
            digits = f"{int(value):,}".replace(",", NBSP)
            return digits if self._whole else f"{digits}.0" if abs(value) < 10 else digits
        return f"{value:g}"

    def _tidy(self) -> None:
        if not self.error() and (number := self.value()) is not None:
            self.set_value(number)

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Everything may be typed: the reason stands beside the field instead."""
        return QValidator.State.Acceptable, text, position

    def stepBy(self, steps: int) -> None:
        number = self.value()
        number = (self._minimum or 0) if number is None else number + steps * self._step(number)
        low, high = self._minimum, self._maximum
        number = max(number, low) if low is not None else number
        number = min(number, high) if high is not None else number
        self.set_value(number)
        self.changed.emit()

    def _step(self, number: float) -> float:
        return 1 if self._whole or abs(number) >= 10 else 0.1 if abs(number) < 1 else 0.5

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        flag = QAbstractSpinBox.StepEnabledFlag
        return flag.StepUpEnabled | flag.StepDownEnabled

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._unit.sizeHint()
        self._unit.setGeometry(self.width() - 28 - size.width(), 0, size.width(), self.height())

    def sizeHint(self) -> QSize:
        return QSize(216, 28)


class TextField(QLineEdit):
    """A line of text; `mono` for commands and paths."""

    changed = Signal()

    def __init__(self, value: str = "", mono: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(value, parent)
        if mono:
            self.setProperty("mono", "true")
        self.textEdited.connect(lambda _text: self.changed.emit())

    def value(self) -> str:
        return self.text().strip()

    def set_value(self, value: object) -> None:
        self.setText("" if value is None else str(value))

    def error(self) -> str:
        return ""


class PathField(TextField):
    """A path, with the button that asks for it."""

    def __init__(self, value: str = "", folder: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(value, mono=True, parent=parent)
        self._folder = folder
        button = self._button = QToolButton(self)
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setCursor(Qt.CursorShape.ArrowCursor)
        button.setAccessibleName("Choose a folder" if folder else "Choose a file")
        button.setToolTip(tip(button.accessibleName()))
        tint(button, "folder", "t2", 14)
        button.clicked.connect(self._ask)
        self.setTextMargins(0, 0, 22, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._button.setGeometry(self.width() - 26, 4, 22, self.height() - 8)

    def _ask(self) -> None:
        start = self.value() or str(Path.home())
        if self._folder:
            name = QFileDialog.getExistingDirectory(self, "Choose a folder", start)
        else:
            name, _ = QFileDialog.getOpenFileName(self, "Choose a file", start)
        if name:
            self.setText(name)
            self.changed.emit()


class BoolField(QCheckBox):
    """A tick with a few words."""

    changed = Signal()

    def __init__(self, value: bool, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setChecked(value)
        self.clicked.connect(lambda _on: self.changed.emit())

    def value(self) -> bool:
        return self.isChecked()

    def set_value(self, value: object) -> None:
        self.setChecked(bool(value))

    def error(self) -> str:
        return ""


class ListField(QComboBox):
    """One of many; `free` takes what is typed as well."""

    changed = Signal()

    def __init__(
        self,
        entries: Sequence[tuple[Any, str]],
        value: Any,
        free: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        if free:
            self.setEditable(True)
            self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
            editor = self.lineEdit()
            assert editor is not None
            editor.textEdited.connect(lambda _text: self.changed.emit())
        self.set_entries(entries)
        self.set_value(value)
        self.activated.connect(lambda _i: self.changed.emit())

    def set_entries(self, entries: Sequence[tuple[Any, str]]) -> None:
        """Others to choose from; the value stays."""
        value = self.value()
        self.clear()
        for entry, text in entries:
            self.addItem(text, entry)
        self.set_value(value)

    def value(self) -> Any:
        if self.isEditable():
            at = self.findText(self.currentText())
            return self.itemData(at) if at >= 0 else self.currentText().strip()
        return self.currentData()

    def set_value(self, value: Any) -> None:
        at = self.findData(value)
        if at >= 0:
            self.setCurrentIndex(at)
        elif self.isEditable():
            self.setEditText(str(value))

    def error(self) -> str:
        return ""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class SegmentField(QWidget):
    """One of a few, all in view."""

    changed = Signal()

    def __init__(self, entries: Sequence[tuple[Any, str]], value: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self._entries = [entry for entry, _ in entries]
        self._segments = Segments(entries, value, stretch=True)
        for entry, text in entries:
            if text != str(entry):
                self._segments.button(entry).setToolTip(tip(str(entry)))
                self._segments.button(entry).setAccessibleName(str(entry))
        box.addWidget(self._segments)
        self.setFocusProxy(self._segments.button(entries[0][0]))
        self._segments.changed.connect(lambda _value: self.changed.emit())

    def value(self) -> Any:
        return self._segments.value()

    def set_value(self, value: Any) -> None:
        self._segments.set_value(value)

    def error(self) -> str:
        return ""

    def buttons(self) -> list[QWidget]:
        """In their order."""
        return [self._segments.button(entry) for entry in self._entries]

    def set_state(self, state: str) -> None:
        self._segments.set_state(state)


Field = NumberField | TextField | BoolField | ListField | SegmentField


def choice_field(choices: Sequence[Any], value: Any) -> Field:
    """Segments for a few short choices, all of one width, else a list."""
    entries = [(choice, SHORT.get(str(choice), str(choice))) for choice in choices]
    if len(entries) <= MAX_SEGMENTS and len(entries) * max(len(text) for _, text in entries) <= 22:
        return SegmentField(entries, value)
    return ListField(entries, value)


def mark(field: QWidget, state: str) -> None:
    """Show a field as error, warning or fine ("")."""
    if isinstance(field, SegmentField):
        field.set_state(state)
    else:
        restyle(field, state=state)
