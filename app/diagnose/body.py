"""Findings beside the chosen one; in a narrow window one of the two at a time."""

from __future__ import annotations

from app.diagnose.detail import Detail
from app.diagnose.left import WIDTH, LeftPane
from app.widgets.two_panes import TwoPanes


class DiagnoseBody(TwoPanes):
    """`left` and `detail`."""

    def __init__(self) -> None:
        left, detail = LeftPane(), Detail()
        super().__init__((left, "Findings"), (detail, "Evidence"), WIDTH, wide=1, least=640)
        self.left, self.detail = left, detail
