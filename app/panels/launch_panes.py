"""The panes of Launch: gallery at the left, form in the middle, preflight and capture at the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSplitter, QStackedWidget, QWidget

from app.settings import Settings
from app.tokens import RUN_BAR
from app.widgets.basic import ElidedLabel, Hairline, Surface, label, row, strip
from app.widgets.button import Button, Segments
from app.widgets.scroll import scrolled

NARROW = 1280  # of the window; below it the right pane becomes a tab
LEFT, CENTRE, RIGHT = 432, 700, 448
LEAST_LEFT, LEAST_CENTRE, LEAST_RIGHT = 300, 560, 280


class LaunchPanes(Surface):
    """Lays out what the screen gives it, and folds the right pane where the window is narrow."""

    def __init__(
        self,
        settings: Settings,
        heading: QHBoxLayout,
        left: Sequence[QWidget],
        forms: Sequence[QWidget],
        side: Sequence[QWidget],
        parent: QWidget | None = None,
    ) -> None:
        """`left`: the first takes the height. `forms`: one at a time. `side`: under each other."""
        super().__init__("raised", parent=parent)
        self._settings = settings
        self.narrow: bool | None = None
        self._touched = False  # the user has moved a divider
        self.box.addWidget(strip(heading, RUN_BAR))
        self.forms = QStackedWidget()
        for form in forms:
            self.forms.addWidget(form)
        self.footer, self.command = self._build_footer(), self._build_command()
        self._side = self._build_side(side)
        self._middle = QStackedWidget()
        self._middle.addWidget(self.forms)
        self._tabs = Segments((("form", "Settings"), ("side", "Preflight and capture")), "form")
        self._tabs.changed.connect(self._on_tab)
        self.tab_strip = strip(row(self._tabs, None, margins=(16, 0, 16, 0)), RUN_BAR)
        first, self._centre, self._right = Surface("raised"), Surface("raised"), Surface("raised")
        for i, widget in enumerate(left):
            first.box.addWidget(widget, 1 if i == 0 else 0)
        self._centre.box.addWidget(self.tab_strip)
        self._centre.box.addWidget(self._middle, 1)
        self._centre.box.addWidget(self.command)
        self.splitter = QSplitter()
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        for pane, least in ((first, LEAST_LEFT), (self._centre, LEAST_CENTRE), (self._right, LEAST_RIGHT)):
            pane.setMinimumWidth(least)
            self.splitter.addWidget(pane)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.splitterMoved.connect(self._on_moved)
        self.box.addWidget(self.splitter, 1)
        self._fold(False)

    def _build_side(self, panes: Sequence[QWidget]) -> QScrollArea:
        inner = Surface("raised")
        for pane in panes:
            inner.box.addWidget(pane)
        inner.box.addStretch(1)
        return scrolled(inner)

    def _build_command(self) -> Surface:
        bar = Surface("raised")
        bar.setFixedHeight(40)
        self.command_text = ElidedLabel("", "sub")
        self.command_text.setProperty("mono", "true")
        self.copy_button = Button("Copy command", kind="flat", icon="copy")
        inner = QWidget()
        inner.setLayout(row(self.command_text, self.copy_button, spacing=16, margins=(24, 0, 16, 0)))
        bar.box.addWidget(Hairline())
        bar.box.addWidget(inner, 1)
        return bar

    def _build_footer(self) -> Surface:
        footer = Surface("raised")
        self.estimate, self.size_text = ElidedLabel("", "sub"), label("", "sub")
        self.run_button = Button("Run", kind="primary", icon="launch", key="F5", big=True)
        line = row(self.estimate, self.size_text, margins=(16, 16, 16, 12))
        line.setStretch(0, 1)
        footer.box.addWidget(Hairline())
        footer.box.addLayout(line)
        footer.box.addLayout(row(self.run_button, margins=(16, 0, 16, 16)))
        return footer

    def show_tab(self, name: str) -> None:
        """form, or side: which of the two is in view where they share the middle."""
        self._tabs.set_value(name)
        self._on_tab(name)

    def _on_tab(self, name: object) -> None:
        self._middle.setCurrentWidget(self._side if name == "side" and self.narrow else self.forms)

    def _on_moved(self, _position: int, _index: int) -> None:
        self._touched = True

    def reset_layout(self) -> None:
        """The widths of a first start."""
        self._touched = False
        total = self.width()
        left = max(LEAST_LEFT, min(LEFT, total - CENTRE - RIGHT))
        right = max(LEAST_RIGHT, min(RIGHT, total - left - CENTRE))
        self.splitter.setSizes([left, max(LEAST_CENTRE, total - left - right), right])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.window().width() < NARROW
        if narrow != self.narrow:
            self._fold(narrow)
        elif not self._touched:
            self.reset_layout()

    def _fold(self, narrow: bool) -> None:
        self.narrow = narrow
        if narrow:
            self._middle.addWidget(self._side)
            self._centre.box.addWidget(self.footer)
        else:
            self._middle.removeWidget(self._side)
            self._right.box.addWidget(self._side, 1)
            self._right.box.addWidget(self.footer)
            self._side.show()  # a stack hides what is not in front
        self.show_tab("form")
        self.footer.show()
        self.tab_strip.setVisible(narrow)
        self._right.setVisible(not narrow)
        self.reset_layout()
        if not narrow and (state := self._settings.state("launch/splitter")) is not None:
            self._touched = self.splitter.restoreState(state)

    def keep_layout(self) -> None:
        """Remember the widths for the next start."""
        if self._touched and not self.narrow:
            self._settings.set("launch/splitter", self.splitter.saveState())
