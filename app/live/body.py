"""Charts beside the side pane; in a narrow window one of the two at a time."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app.live.side_pane import WIDTH, SidePane
from app.tokens import PADDING, RAIL_WIDTH
from app.widgets.basic import Hairline, Surface, row
from app.widgets.button import Segments
from app.widgets.chart_data import CurveData, Row, StepBars
from app.widgets.chart_stack import ChartStack
from app.widgets.time_view import TimeView

NARROW = 1280 - RAIL_WIDTH  # below it the panes take turns

# What stands there before the first values: the frames of the charts.
FRAME = (
    Row("steps", "Step time", 184, StepBars(notes=("ms",))),
    Row("cores", "CPU cores", 176, CurveData(notes=("% busy",), top=100)),
    Row("host", "Host memory", 128, CurveData(notes=("GiB",))),
)


class LiveBody(QWidget):
    """`charts` and `side`, with a choice between them where there is no room for both."""

    def __init__(self, view: TimeView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.charts = ChartStack(view)
        self.side = SidePane()
        self._narrow: bool | None = None
        self._choice = Segments([("charts", "Charts"), ("side", "Stages and events")])
        self._choice.changed.connect(lambda _value: self._arrange())
        self._head = Surface("raised")
        self._head.box.addLayout(row(self._choice, None, margins=(PADDING, 4, PADDING, 4)))
        self._head.box.addWidget(Hairline())
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setHandleWidth(1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.charts)
        self._splitter.addWidget(self.side)
        self._splitter.setStretchFactor(0, 1)
        self._splitter.setStretchFactor(1, 0)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._head)
        box.addWidget(self._splitter, 1)
        self._arrange()
        self.reset_layout()

    def reset_layout(self) -> None:
        self._splitter.setSizes([max(480, self.width() - WIDTH), WIDTH])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        if narrow is not self._narrow:
            self._narrow = narrow
            self._arrange()
            self.reset_layout()

    def _arrange(self) -> None:
        narrow = bool(self._narrow)
        chosen = self._choice.value()
        self._head.setVisible(narrow)
        self.charts.setVisible(not narrow or chosen == "charts")
        self.side.setVisible(not narrow or chosen == "side")

