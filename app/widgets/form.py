"""A form made from settings: groups of rows, each a label, a field, and a sentence at the right."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.icons import IconLabel
from app.tokens import FORM_ROW
from app.widgets.basic import Hairline, label, restyle, row, tip
from app.widgets.fields import (
    BoolField,
    Field,
    ListField,
    NumberField,
    PathField,
    SegmentField,
    TextField,
    choice_field,
    mark,
)
from app.widgets.fold import FoldHeading

LABEL_WIDTH, FIELD_WIDTH, EDGE = 136, 216, 24


class Described(Protocol):
    """What a form needs to know of a setting; profiler.catalog.Setting has it."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def default(self) -> Any: ...
    @property
    def help(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def minimum(self) -> float | None: ...
    @property
    def maximum(self) -> float | None: ...
    @property
    def choices(self) -> tuple[Any, ...]: ...
    @property
    def label(self) -> str: ...


def brief(help: str) -> str:
    """The first clause of a help text; the whole is in the tooltip."""
    return help.partition(";")[0]


def make_field(setting: Described, options: Sequence[tuple[Any, str]] = ()) -> Field:
    """The field for a setting. `options` offers values for a text that can also be typed."""
    if options:
        return ListField(options, setting.default, free=not setting.choices)
    if setting.choices:
        return choice_field(setting.choices, setting.default)
    if setting.type == "bool":
        return BoolField(bool(setting.default), setting.unit)
    if setting.type in ("int", "float"):
        whole = setting.type == "int"
        return NumberField(setting.default, setting.unit, setting.minimum, setting.maximum, whole)
    if setting.type == "path":
        return PathField("" if setting.default is None else str(setting.default))
    return TextField("" if setting.default is None else str(setting.default))


class Link(str):
    """A sentence with a link, as HTML. All in it that is not ours is escaped."""


class Hint(QWidget):
    """The sentence beside a field: quiet help, or a warning or an error with its icon."""

    link = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = IconLabel("warning", "warn", 14)
        self._text = QLabel()
        self._text.setProperty("role", "hint")
        self._text.setWordWrap(True)
        self._text.linkActivated.connect(self.link)
        holder = QVBoxLayout()
        holder.setContentsMargins(0, 1, 0, 0)
        holder.addWidget(self._icon)
        holder.addStretch(1)
        box = row(spacing=8)
        box.addLayout(holder)
        box.addWidget(self._text, 1)
        self.setLayout(box)
        self.show_text("")

    def show_text(self, text: str, state: str = "") -> None:
        """State "" is help, else warning or error. Plain text, unless it is a `Link` that we wrote."""
        tone = {"warning": "warn", "error": "err"}.get(state, "t3")
        rich = isinstance(text, Link)
        self._text.setTextFormat(Qt.TextFormat.RichText if rich else Qt.TextFormat.PlainText)
        self._icon.setVisible(bool(state))
        if state:
            self._icon.show_icon(state, tone)
        self._text.setText(text)
        restyle(self._text, tone=tone)

    def text(self) -> str:
        return self._text.text()


class Form(QWidget):
    """Rows by group. `changed` after each edit; `show_hints` puts sentences and states beside the fields."""

    changed = Signal(str)  # the setting's name
    wanted = Signal(QWidget)  # a field that must come into view

    def __init__(self, below: bool = False, parent: QWidget | None = None) -> None:
        """With `below`, fields are wide and the sentences stand under them."""
        super().__init__(parent)
        self._below = below
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(0)
        self._settings: dict[str, Described] = {}
        self.fields: dict[str, Field] = {}
        self.hints: dict[str, Hint] = {}
        self.labels: dict[str, QLabel] = {}
        self.folds: dict[str, FoldHeading] = {}
        self._opened: set[str] = set()  # groups that the user has opened, here or in another form

    def show_settings(
        self,
        settings: Sequence[Described],
        options: Mapping[str, Sequence[tuple[Any, str]]] | None = None,
        after: QWidget | None = None,
        folded: Collection[str] = (),
    ) -> None:
        """Rows for these settings, in their order, divided by group; Tab reaches them from `after`.

        The groups in `folded` show their heading only, until the user opens them.
        """
        while (item := self._box.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self._settings = {setting.name: setting for setting in settings}
        self.fields, self.hints, self.labels, self.folds = {}, {}, {}, {}
        groups: dict[str, list[Described]] = {}
        for setting in settings:
            groups.setdefault(setting.group, []).append(setting)
        for i, (title, members) in enumerate(groups.items()):
            if i:
                self._box.addWidget(Hairline())
            part = self._group(title, members, options or {}, title in folded)
            if title in folded:
                self._box.addWidget(self._fold(title, part))
            self._box.addWidget(part)
        self._box.addStretch(1)
        stops: list[QWidget] = [after] if after is not None else []
        for title, members in groups.items():
            stops += [self.folds[title]] if title in self.folds else []
            for field in (self.fields[setting.name] for setting in members):
                # their own buttons, not the proxy: Qt loses track of those
                stops += field.buttons() if isinstance(field, SegmentField) else [field]
        for first, second in pairwise(stops):
            QWidget.setTabOrder(first, second)

    def _fold(self, title: str, body: QWidget) -> FoldHeading:
        heading = self.folds[title] = FoldHeading(title, body, EDGE, title in self._opened)

        def keep(opened: bool) -> None:
            (self._opened.add if opened else self._opened.discard)(title)

        heading.toggled.connect(keep)
        return heading

    def _group(
        self,
        title: str,
        settings: Sequence[Described],
        options: Mapping[str, Sequence[tuple[Any, str]]],
        folds: bool,
    ) -> QWidget:
        part = QWidget(self)  # at once ours: shown alone it would be a window
        grid = QGridLayout(part)
        grid.setContentsMargins(EDGE, 0 if folds else 12, 16, 8)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(0)
        grid.setColumnMinimumWidth(0, LABEL_WIDTH)
        grid.setColumnMinimumWidth(1, FIELD_WIDTH)
        grid.setColumnStretch(1 if self._below else 2, 1)
        if not folds:
            heading = label(title, "group")
            heading.setFixedHeight(20)
            heading.setAlignment(Qt.AlignmentFlag.AlignTop)
            grid.addWidget(heading, 0, 0, 1, 3)
        for i, setting in enumerate(settings, 1):
            self._row(grid, 2 * i, setting, options.get(setting.name, ()))
        return part

    def _row(
        self, grid: QGridLayout, at: int, setting: Described, options: Sequence[tuple[Any, str]]
    ) -> None:
        field = make_field(setting, options)
        if not self._below:
            field.setFixedWidth(FIELD_WIDTH)
        field.setAccessibleName(setting.label)
        field.setAccessibleDescription(setting.help)
        field.setToolTip(tip(f"{setting.help}\n{setting.name}"))
        field.changed.connect(lambda name=setting.name: self.changed.emit(name))
        text, hint = label(setting.label, "label"), Hint()
        text.setBuddy(field)
        text.setWordWrap(True)
        text.setFixedWidth(LABEL_WIDTH)  # all groups in one line, however long a name is
        grid.setRowMinimumHeight(at, FORM_ROW)
        grid.addWidget(text, at, 0)
        grid.addWidget(field, at, 1)
        if self._below:
            hint.setContentsMargins(0, 0, 0, 10)
            grid.addWidget(hint, at + 1, 1)
        else:
            hint.setContentsMargins(0, 4, 0, 4)
            grid.addWidget(hint, at, 2, Qt.AlignmentFlag.AlignVCenter)
        self.fields[setting.name], self.hints[setting.name], self.labels[setting.name] = field, hint, text
        hint.show_text(brief(setting.help))

    def values(self) -> dict[str, Any]:
        """Every value that can be read, by name: a field with an error has none."""
        return {name: field.value() for name, field in self.fields.items() if not field.error()}

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Fill in; unknown names are ignored."""
        for name, value in values.items():
            if name in self.fields:
                self.fields[name].set_value(value)

    def errors(self) -> dict[str, str]:
        """Entries that cannot be read or are out of range: name -> reason."""
        return {
            name: error
            for name, field in self.fields.items()
            if field.isEnabled() and (error := field.error())
        }

    def show_hints(
        self,
        *,
        errors: Mapping[str, str],
        warnings: Mapping[str, str],
        off: Mapping[str, str],
        notes: Mapping[str, str],
    ) -> None:
        """States by name: what cannot be, what may surprise, what does not apply, and other sentences."""
        for name, field in self.fields.items():
            field.setEnabled(name not in off)
            if name in off:
                state, text = "", off[name]
            elif name in errors:
                state, text = "error", errors[name]
            elif name in warnings:
                state, text = "warning", warnings[name]
            else:
                state, text = "", notes.get(name, brief(self._settings[name].help))
            mark(field, state)
            self.hints[name].show_text(text, state)
            field.setAccessibleDescription(text)

    def label_of(self, name: str) -> str:
        """What the row is called."""
        return self._settings[name].label

    def focus(self, name: str) -> None:
        """Put the cursor into a field, opening its group."""
        if (heading := self.folds.get(self._settings[name].group)) is not None:
            heading.setChecked(True)
        self.fields[name].setFocus()
        self.wanted.emit(self.fields[name])
