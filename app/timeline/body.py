"""The timeline's parts in their places; in a narrow window lanes and side pane take turns."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.document import RunInfo
from app.live.header import chips
from app.timeline.canvas import Canvas
from app.timeline.flame_view import FlameView
from app.timeline.ruler import MiniMap, Ruler
from app.timeline.scene import Scene
from app.timeline.side import WIDTH, SidePane
from app.timeline.spans import Model
from app.timeline.toolbar import RunBar, ToolBar
from app.timeline.view import View
from app.tokens import PADDING
from app.widgets.basic import Hairline, Surface, label, restyle, row
from app.widgets.button import Button
from app.widgets.two_panes import TwoPanes, splitter

FLAME = 236  # px that the flame view has at first


class TimelineBody(QWidget):
    """`bar`, `tools`, `mini`, `ruler`, `canvas`, `flame` and `side` of one scene."""

    trace_wanted = Signal()

    def __init__(self, scene: Scene, view: View, parent: QWidget) -> None:
        super().__init__(parent)
        self.bar, self.tools = RunBar(), ToolBar(scene)
        self.mini, self.ruler, self.canvas = MiniMap(scene, view), Ruler(scene, view), Canvas(scene, view)
        self.flame, self.side = FlameView(scene), SidePane()
        self._make_notice()
        self._lanes = self._column(self.mini, self.ruler, self.canvas)
        self._upper = splitter(self._lanes, self.flame, way=Qt.Orientation.Vertical)
        self._upper.splitterMoved.connect(self._on_moved)
        self._moved = False  # by the user: then the lanes keep their height
        self._panes = TwoPanes((self._upper, "Lanes"), (self.side, "Region and span"), WIDTH)
        self._panes.turned.connect(self.reset_layout)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for widget in (self.bar, self.tools, self._notice):
            box.addWidget(widget)
        box.addWidget(self._panes, 1)
        outer = QVBoxLayout(parent)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self)
        self.reset_layout()

    def _column(self, *widgets: QWidget) -> QWidget:
        column = Surface("raised")
        for widget in widgets:
            column.box.addWidget(widget, 1 if widget is self.canvas else 0)
        return column

    def _make_notice(self) -> None:
        self._notice = Surface("base")
        self._told = label("", "sub")
        self._told.setWordWrap(True)
        self._record = Button("Record with a trace", icon="camera")
        self._record.clicked.connect(self.trace_wanted)
        line = row(self._told, margins=(PADDING, 6, PADDING, 6))
        line.setStretch(0, 1)
        line.addWidget(self._record)
        self._notice.box.addLayout(line)
        self._notice.box.addWidget(Hairline())
        self._notice.hide()

    def notice(self) -> str:
        """What the line over the lanes says; "" where there is none."""
        return self._told.text() if not self._notice.isHidden() else ""

    def _say(self, text: str, record: bool = False, error: bool = False) -> None:
        self._told.setText(text)
        restyle(self._told, tone="err" if error else "")
        self._record.setVisible(record)
        self._notice.setVisible(bool(text))

    def show_info(self, info: RunInfo | None) -> None:
        if info is not None:
            self.bar.show_run(info.name, chips(info))

    def show_model(self, model: Model, has_trace: bool, recording: bool) -> None:
        """What of the lanes is missing, and why."""
        if has_trace and recording:
            self._say("The run holds a trace. It is read when the recording has ended.")
        elif not has_trace and not model.lanes:
            self._say("This run has neither a trace nor steps: only what was sampled is here.", record=True)
        elif not has_trace:
            self._say(
                "No trace in this run: lanes are the steps and stages that the probe measured. A trace "
                "adds operators, kernels and copies.",
                record=not recording,
            )
        else:
            self._say("  ".join(dict.fromkeys(f"{note.rstrip('.')}." for note in model.notes[:3])))

    def share_height(self, wanted: int) -> None:
        """Give the lanes what they need, as far as the flame view keeps its least."""
        whole = sum(self._upper.sizes())
        if self._moved:
            return
        lanes = min(wanted + self.mini.height() + self.ruler.height() + 8, whole - FLAME)
        self._upper.setSizes([max(lanes, 200), whole - max(lanes, 200)])

    def _on_moved(self, *_: int) -> None:
        self._moved = True

    def show_error(self, text: str) -> None:
        self._say(text, error=True)

    def reset_layout(self) -> None:
        self._moved = False
        self._panes.reset_layout()
        self._upper.setSizes([max(200, self.height() - FLAME), FLAME])

    def show_side(self) -> None:
        """Bring the side pane to the front where lanes and pane take turns."""
        self._panes.show_pane(self.side)
        self.side.take_focus()
