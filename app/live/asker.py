"""What is asked of the open run, and how often. One timer for all of the panel."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.document import Document
from app.live import charts, crosshair, side, verdict
from app.live.charts import ChartsData
from app.live.side import SideData
from app.live.state import Live, Where
from app.widgets.chart_stack import ChartStack
from app.widgets.time_view import TimeView
from profiler.errors import ProfilerError
from profiler.run.reader import Run

TICK_MS = 60  # charts at up to 16 Hz
CHARTS_S = 0.05  # between two looks at the data of the charts
DIGITS_S = 0.25  # digits change so often, to be read
VERDICT_S = 1.0
SHARE = {"charts": 1.0, "moment": 2.0}  # times its own length, a question leaves the worker to others
USUAL_SHARE = 8.0
AFTER_ERROR_S = 5.0
OUTPUT_BYTES = 500_000  # shown of one answer: more would hold up the GUI thread
SETTLED_S = 3.0  # older moments get no more values
LAG_S = 0.15  # the live end is shown so much late, so that curves reach it


class Asker(QObject):
    """Asks for what has changed and can be seen; the answers are its signals."""

    ticked = Signal()
    charts = Signal(object, bool)  # ChartsData, whether digits may change
    side = Signal(object)
    moment = Signal(object)
    verdict = Signal(object)
    output = Signal(bytes)

    def __init__(self, document: Document, view: TimeView, stack: ChartStack, parent: QObject) -> None:
        super().__init__(parent)
        self.paused = False
        self.device: int | None = None  # chosen by the user
        self._document, self._view, self._stack = document, view, stack
        self._grew_at = 0.0  # when the file was last seen to grow
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)
        view.changed.connect(self._on_moved)
        view.crosshair_changed.connect(partial(self._soon, "moment"))
        document.grew.connect(self.on_grew)
        self.restart()

    def restart(self) -> None:
        """Another run: nothing is known of it."""
        self._live = Live()
        self.device, self._output_id, self.paused = None, 0, False
        self.ask_all()

    def ask_all(self) -> None:
        """Everything anew at the next tick."""
        self._moved, self._digits_owed = True, False
        self._told: set[str] = set()
        self._stale = {"charts", "side", "verdict", "output", "moment"}
        self._next: dict[str, float] = {}

    def on_grew(self) -> None:
        self._grew_at = time.monotonic()
        self._stale |= {"charts", "side", "verdict", "output"}
        at = self._view.crosshair
        if at is None or at > self._view.end - SETTLED_S:  # its values may have come by now
            self._stale.add("moment")

    def start(self) -> None:
        self.ask_all()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def now(self) -> float:
        """The newest moment, going on between two commits of the recorder, in s."""
        info = self._document.info
        if info is None:
            return 0.0
        if not self._document.recording:
            return info.seconds
        passed = min(time.monotonic() - self._grew_at, 0.5)
        return max(0.0, info.seconds + passed - LAG_S)

    def tick(self) -> None:
        """Move the view, and ask for what has changed."""
        if self._document.info is None:
            return
        if self._document.recording and not self.paused:
            self._view.advance(self.now())
        self.ticked.emit()
        if self._digits_owed and time.monotonic() >= self._next.get("digits", 0.0):
            self._stale.add("charts")
        live, at = self._live, self._view.crosshair
        if self._moved or not self.paused:
            width = self._stack.plot_width()
            where = Where(self._view.x0, self._view.x1, width, self.device)
            if self._ask("charts", CHARTS_S, partial(charts.query, live=live, where=where), self._on_charts):
                self._moved = False
        wanted = partial(crosshair.query, live=live, at=at, wanted=self.device)
        if at is not None or not self.paused:
            self._ask("moment", DIGITS_S, wanted, self.moment.emit)
        if not self.paused:
            self._ask("side", DIGITS_S, partial(side.query, live=live), self._on_side)
        self._ask("verdict", VERDICT_S, partial(verdict.query, live=live), self.verdict.emit)
        self._ask("output", DIGITS_S, partial(new_output, after_id=self._output_id), self._on_output)

    def _ask(
        self, what: str, every_s: float, function: Callable[[Run], Any], callback: Callable[[Any], None]
    ) -> bool:
        """One question, when it is stale, due, and the one before is answered."""
        now = time.monotonic()
        if what not in self._stale or now < self._next.get(what, 0.0) or self._document.busy(what):
            return False
        self._stale.discard(what)
        self._next[what] = now + every_s

        def timed(run: Run) -> tuple[Any, float]:
            begun = time.monotonic()
            return function(run), time.monotonic() - begun

        def answered(answer: tuple[Any, float]) -> None:
            # A question that takes long, on a run of days, does not keep the others waiting.
            pause = answer[1] * SHARE.get(what, USUAL_SHARE)
            if pause > every_s:
                self._next[what] = time.monotonic() + pause
            callback(answer[0])

        self._document.query(what, timed, answered, partial(self._on_error, what))
        return True

    def _on_error(self, what: str, error: Exception) -> None:
        """Told once, not at every tick."""
        self._next[what] = time.monotonic() + AFTER_ERROR_S
        self._stale.add(what)
        text = str(error) if isinstance(error, ProfilerError) else f"{type(error).__name__}: {error}"
        if text not in self._told:
            self._told.add(text)
            self._document.failed.emit(text)

    def _soon(self, what: str) -> None:
        self._stale.add(what)
        self._next[what] = 0.0

    def _on_moved(self) -> None:
        self._moved = True
        self._stale.add("charts")

    def _on_side(self, data: SideData) -> None:
        self._stale.add("charts")  # they name the median of the steady steps, which is known only now
        self.side.emit(data)

    def _on_charts(self, data: ChartsData) -> None:
        now = time.monotonic()
        digits = now >= self._next.get("digits", 0.0)
        self._digits_owed = not digits
        if digits:
            self._next["digits"] = now + DIGITS_S
        self.charts.emit(data, digits)

    def _on_output(self, answer: tuple[int, bytes]) -> None:
        self._output_id, data = answer
        if data:
            self.output.emit(data)


def new_output(run: Run, after_id: int) -> tuple[int, bytes]:
    """The newest id and what the target printed since `after_id`; of very much only the end."""
    parts = run.output(after_id)
    data = b"".join(part for _, _, part in parts)
    if len(data) > OUTPUT_BYTES:
        cut = b"(the first %d bytes are in the run file only)\r\n" % (len(data) - OUTPUT_BYTES)
        data = cut + data[-OUTPUT_BYTES:]
    return (parts[-1][0] if parts else after_id), data
