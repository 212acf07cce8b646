"""Charts beside the side pane; in a narrow window one of the two at a time."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.live.side_pane import WIDTH, SidePane
from app.widgets.chart_data import CurveData, Row, StepBars
from app.widgets.chart_stack import ChartStack
from app.widgets.time_view import TimeView
from app.widgets.two_panes import TwoPanes

# What stands there before the first values: the frames of the charts.
FRAME = (
    Row("steps", "Step time", 184, StepBars(notes=("ms",))),
    Row("cores", "CPU cores", 176, CurveData(notes=("% busy",), top=100)),
    Row("host", "Host memory", 128, CurveData(notes=("GiB",))),
)


class LiveBody(TwoPanes):
    """`charts` and `side`."""

    def __init__(self, view: TimeView, parent: QWidget | None = None) -> None:
        charts, side = ChartStack(view), SidePane()
        super().__init__((charts, "Charts"), (side, "Stages and events"), WIDTH, parent=parent)
        self.charts, self.side = charts, side
