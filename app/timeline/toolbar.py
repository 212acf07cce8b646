"""The two bars over the lanes: which run, and search, filter, pin, fit, mark, steps."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QWidget

from app.icons import IconLabel
from app.live.header import Chip
from app.live.run_bar import Chips
from app.timeline.layout import GROUPS, ORDER
from app.timeline.scene import Scene
from app.tokens import PADDING, RUN_BAR
from app.widgets.basic import Hairline, Surface, label, row, strip, tip
from app.widgets.button import Button
from app.widgets.sentence import Part, Sentence
from profiler.units import format_count, format_time

HEIGHT = 40


class RunBar(QWidget):
    """The run's name, its settings, the step; and the way back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = Sentence(15, 24)
        self.chips = Chips()
        self.facts = Sentence(13, 20)
        self.progress = label("", "sub")
        self.cancel = Button("Cancel", kind="flat")
        self.cancel.hide()
        self.back = Button("Back", kind="flat", icon="reset", key="Alt+Left")
        line = row(self.name, spacing=12, margins=(PADDING, 0, PADDING, 0))
        line.addWidget(self.chips, 100)
        for widget in (self.facts, None, self.progress, self.cancel, self.back):
            line.addStretch(1) if widget is None else line.addWidget(widget)
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(strip(line, RUN_BAR))

    def show_run(self, name: str, chips: list[Chip]) -> None:
        self.name.show_parts([Part(name, "t1", 600)])
        self.chips.show_chips(chips)

    def show_step(self, step: str) -> None:
        """Median time of a step; "" where there are none."""
        self.facts.show_parts([Part("step "), Part(step, "t1", 600), Part(", median", "t3")] if step else [])

    def show_progress(self, text: str) -> None:
        self.progress.setText(text)
        self.progress.setVisible(bool(text))
        self.cancel.setVisible(bool(text))


class ToolBar(QWidget):
    """Buttons say what their key does too; what they do is the panel's."""

    searched = Signal(str)
    stepped = Signal(int)  # to the next hit, 1, or the one before, -1
    pressed = Signal(str)  # pin, fit, mark, next_step, previous_step

    def __init__(self, scene: Scene, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene = scene
        self.field = QLineEdit()
        self.field.setPlaceholderText("Search spans")
        self.field.setAccessibleName("Search spans")
        self.field.setMinimumWidth(150)
        self.field.setMaximumWidth(260)
        self.field.textChanged.connect(self.searched)
        self.field.installEventFilter(self)
        self.count = label("", "hint")
        self.count.setMinimumWidth(72)
        self.before = self._small("up", "The hit before (Shift+Enter)", lambda: self.stepped.emit(-1))
        self.after = self._small("down", "The next hit (Enter)", lambda: self.stepped.emit(1))
        self.lanes = Button("All lanes", icon="filter")
        self.menu = QMenu(self.lanes)
        self.menu.aboutToShow.connect(self._fill_menu)
        self.lanes.clicked.connect(
            lambda: self.menu.popup(self.lanes.mapToGlobal(self.lanes.rect().bottomLeft()))
        )
        self.buttons = {
            name: Button(text, icon=icon, key=key)
            for name, text, icon, key in (
                ("pin", "Pin", "follow", "P"),
                ("fit", "Fit", "grid", "F"),
                ("mark", "Mark", "mark", "M"),
            )
        }
        self.step = Button("Step", kind="flat", key=", .")
        for name, button in self.buttons.items():
            button.clicked.connect(lambda _=False, what=name: self.pressed.emit(what))
        self.step.clicked.connect(lambda: self.pressed.emit("next_step"))
        self.span = label("", "sub")
        self.keys = label("W S zoom, A D pan", "hint")
        line = row(
            IconLabel("search", "t3", 16),
            self.field,
            self.count,
            self.before,
            self.after,
            4,
            self.lanes,
            *self.buttons.values(),
            self.step,
            None,
            self.span,
            self.keys,
            margins=(PADDING, 0, PADDING, 0),
        )
        bar = Surface("raised")
        bar.setFixedHeight(HEIGHT)
        bar.box.addLayout(line, 1)
        bar.box.addWidget(Hairline())
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(bar)
        self.show_hits(-1, 0)
        scene.lanes_changed.connect(self._name_lanes)

    def _small(self, icon: str, text: str, do: Callable[[], None]) -> Button:
        button = Button("", kind="flat", icon=icon)
        button.setFixedWidth(32)
        button.setAccessibleName(text)
        button.setToolTip(tip(text))
        button.clicked.connect(lambda: do())
        return button

    def show_hits(self, at: int, count: int) -> None:
        """`at` from 0, -1 where none is chosen yet."""
        text = ""
        if self.field.text().strip():
            text = (
                f"{format_count(at + 1)} of {format_count(count)}"
                if at >= 0
                else f"{format_count(count)} found"
            )
        self.count.setText(text)
        for widget in (self.count, self.before, self.after):
            widget.setVisible(bool(text))
            widget.setEnabled(count > 0)

    def show_span(self, ns: float) -> None:
        self.span.setText(f"{format_time(ns)} in view")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.keys.setVisible(self.width() >= 1180)
        self.span.setVisible(self.width() >= 1020)
        self.step.setVisible(self.width() >= 860)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                self.stepped.emit(-1 if back else 1)
                return True
            if event.key() == Qt.Key.Key_Escape and self.field.text():
                self.field.clear()
                return True
        return super().eventFilter(watched, event)

    def _name_lanes(self) -> None:
        hidden = sum(strip.key in self.scene.arrangement.hidden for strip in self.scene.strips)
        total = len(self.scene.strips)
        self.lanes.setText("All lanes" if not hidden else f"{total - hidden} of {total} lanes")

    def _fill_menu(self) -> None:
        """Every kind of lane with its lanes, to show or to hide."""
        self.menu.clear()
        self.menu.addAction("Show all lanes", lambda: self._hide(set()))
        self.menu.addSeparator()
        for kind in ORDER:
            own = [strip for strip in self.scene.strips if strip.kind == kind]
            if not own:
                continue
            keys = {strip.key for strip in own}
            group = self.menu.addAction(GROUPS[kind])
            group.setCheckable(True)
            group.setChecked(not keys <= self.scene.arrangement.hidden)
            group.triggered.connect(lambda shown, keys=keys: self._show(keys, shown))
            for strip_ in own if len(own) > 1 else ():
                text = f"{strip_.title}  {strip_.note}".strip().replace("&", "&&")
                action = self.menu.addAction(f"    {text[:60]}")
                action.setCheckable(True)
                action.setChecked(strip_.key not in self.scene.arrangement.hidden)
                action.triggered.connect(lambda shown, key=strip_.key: self._show({key}, shown))

    def _show(self, keys: set[str], shown: bool) -> None:
        hidden = self.scene.arrangement.hidden
        self._hide(hidden - keys if shown else hidden | keys)

    def _hide(self, keys: set[str]) -> None:
        self.scene.arrangement.hidden = keys
        self.scene.arrange()
