"""Live: what holds the run back, and the charts that show it, while it runs or from a file."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.document import Document
from app.live import charts, header, side, verdict
from app.live.asker import Asker
from app.live.body import FRAME, LiveBody
from app.live.run_bar import TRACE_STEPS, RunBar
from app.live.trial import Trial
from app.live.verdict_strip import VerdictStrip
from app.recorder import Recorder, State
from app.widgets.output_view import OutputView
from app.widgets.time_view import TimeView
from profiler.units import clock, format_rate


class LivePanel(QWidget):
    """Asks the document by queries, and hands the answers to its parts."""

    title = "Live"

    def __init__(self, document: Document, recorder: Recorder, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.document, self.recorder = document, recorder
        self.view = TimeView(self)
        self.bar, self.strip, self.body = RunBar(), VerdictStrip(), LiveBody(self.view)
        self.output = OutputView()
        self.trial = Trial(document, self.strip)
        self.asker = Asker(document, self.view, self.body.charts, self)
        self._agreement = verdict.Agreement()
        self._marks = 0
        self._unfolded = False  # the output, by us and not by the user
        self._devices = 0
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for widget, stretch in ((self.bar, 0), (self.strip, 0), (self.body, 1), (self.output, 0)):
            box.addWidget(widget, stretch)
        self._connect()
        self._on_state()
        if document.info is not None:
            self._on_opened()
        else:
            self._show_nothing()

    def _connect(self) -> None:
        self.document.opened.connect(self._on_opened)
        self.document.closed.connect(self._show_nothing)
        self.document.grew.connect(self._on_grew)
        self.document.ended.connect(self._on_ended)
        self.recorder.state_changed.connect(self._on_state)
        self.recorder.failed.connect(self._on_recorder_failed)
        self.asker.ticked.connect(self._on_tick)
        self.asker.charts.connect(self._show_charts)
        self.asker.side.connect(self._show_side)
        self.asker.moment.connect(lambda data: self.body.side.show_moment(data, self.view.span))
        self.asker.verdict.connect(self._show_verdict)
        self.asker.output.connect(self._show_output)
        self.view.following_changed.connect(self.bar.following.show_following)
        self.bar.follow_pressed.connect(self.follow)
        self.bar.pause_pressed.connect(self.toggle_pause)
        self.bar.mark_pressed.connect(self.mark)
        self.bar.trace_pressed.connect(partial(self.recorder.trace, TRACE_STEPS))
        self.bar.stop_pressed.connect(self.recorder.stop)
        self.bar.device_chosen.connect(self._choose_device)
        self.strip.diagnose_wanted.connect(partial(self._perform, "show:diagnose"))
        self.body.side.no_gpu.doctor_wanted.connect(partial(self._perform, "check_machine"))
        self.body.side.event_chosen.connect(self._show_moment_at)
        self.output.typed.connect(self.recorder.send_input)
        for key, do in (("F", self.fit), ("C", self.copy_moment)):
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(do)

    # What the user does.

    def toggle_pause(self) -> None:
        """Hold charts and tables still, or go on; the recording goes on in any case."""
        if not self.document.recording:
            return
        paused = self.asker.paused = not self.asker.paused
        self.bar.show_paused(paused)
        if paused:
            self.view.hold()
        else:
            self.asker.ask_all()
            self.view.follow()

    def follow(self) -> None:
        """Go to the live end, with the zoom as it is."""
        if self.asker.paused:
            self.toggle_pause()
        else:
            self.view.follow()

    def fit(self) -> None:
        self.view.fit()

    def toggle_output(self) -> None:
        self.output.toggle()

    def mark(self) -> None:
        """Put a numbered mark at this moment: asking for a text would miss it."""
        if self.recorder.state is State.RECORDING:
            self._marks += 1
            self.recorder.mark(f"Mark {self._marks}")

    def verify(self) -> None:
        """As the button on the verdict strip, which knows whether there is something to test."""
        self.strip.verify.click()

    def copy_moment(self) -> None:
        self.body.side.copy_moment()

    def reset_layout(self) -> None:
        self.body.reset_layout()

    def _choose_device(self, device: int) -> None:
        self.asker.device = device
        self.asker.ask_all()

    def _show_moment_at(self, seconds: float) -> None:
        """Bring an event into view, with the crosshair on it."""
        if not self.view.x0 <= seconds <= self.view.x1:
            self.view.show_range(seconds - self.view.span / 2, seconds + self.view.span / 2)
        self.view.set_crosshair(max(0.0, seconds), pinned=True)

    def _perform(self, action: str) -> None:
        """An action of the window that this panel stands in."""
        if callable(perform := getattr(self.window(), "perform", None)):
            perform(action)

    # What happens to the run.

    def _on_opened(self, *_: object) -> None:
        info = self.document.info
        if info is None:
            return
        self._agreement, self._marks = verdict.Agreement(), 0
        self.asker.restart()
        self.output.clear()
        if self._unfolded and self.output.open:
            self.output.toggle()
        self._unfolded = False
        self.bar.show_paused(False)
        self.view.reset(info.seconds, self.document.recording)
        self.bar.following.show_following(self.view.following)
        self.trial.opened()
        self._on_grew()
        self._on_state()
        self.asker.tick()

    def _show_nothing(self) -> None:
        """Before the run file is there: the names of the charts."""
        spec = self.recorder.spec
        self.bar.show_name(spec.title if spec is not None else "")
        self.bar.chips.show_chips([])
        self.bar.progress.show_parts([])
        self.bar.show_ending(None)
        self.bar.clock.setText("00:00")
        self.body.side.show_data(side.SideData())
        self.strip.show_verdict(verdict.VerdictData("waiting", "Starting"), None, False)
        self.body.charts.show_rows(FRAME, True, False)
        self.output.clear()

    def _on_grew(self) -> None:
        info = self.document.info
        if info is None:
            return
        self.bar.show_name(info.name)
        self.bar.chips.show_chips(header.chips(info))
        self.bar.show_ending(header.ending(info))
        if len(info.devices) != self._devices:  # they become known after the start
            self._devices = len(info.devices)
            self._on_state()

    def _on_ended(self) -> None:
        """The last values, and the end of the output where the target ended badly."""
        info = self.document.info
        assert info is not None
        self.asker.paused = False
        self.asker.ask_all()
        self.view.finish(info.seconds)
        self._on_state()
        if header.failed(info) and not self.output.open:
            self.output.toggle()
            self._unfolded = True
        self.trial.ended()

    def _on_recorder_failed(self, text: str) -> None:
        if self.document.path is not None:
            self.output.feed(f"\r\nrecorder: {text}\r\n".encode())
            self.output.refresh()

    def _on_state(self, *_: object) -> None:
        ours = self.recorder.active
        if self.recorder.state is State.STARTING:
            self._show_nothing()
        info = self.document.info
        self.bar.show_state(
            recording=ours or self.document.recording,
            stopping=self.recorder.state is State.STOPPING,
            ours=ours,
            trace=info is not None and bool(info.devices),
        )
        self.output.set_input(ours and self.recorder.spec is not None and not self.recorder.spec.watch)

    def showEvent(self, event: QShowEvent) -> None:
        self.asker.start()

    def hideEvent(self, event: QHideEvent) -> None:
        self.asker.stop()

    # The answers.

    def _on_tick(self) -> None:
        info = self.document.info
        text = clock(info.seconds * 1e9) if info is not None else ""
        if text != self.bar.clock.text():
            self.bar.clock.setText(text)

    def _show_charts(self, data: charts.ChartsData, digits: bool) -> None:
        self.body.charts.show_rows(data.rows, digits, self.document.recording, data.marks)
        info = self.document.info
        if info is not None:
            self.bar.show_devices(info.devices, data.device.id if data.device else None)

    def _show_side(self, data: side.SideData) -> None:
        self.body.side.show_data(data)
        self.bar.show_progress(data.step, data.steps_planned, format_rate(data.throughput, data.unit))

    def _show_verdict(self, data: verdict.VerdictData) -> None:
        now = time.monotonic()
        changed = self._agreement.feed(data, now, at_once=not self.document.recording)
        shown = self._agreement.shown
        if shown is not None:
            age = self._agreement.age(now) if self.document.recording else None
            self.strip.show_verdict(shown, age, changed)
            self.body.side.light_up(shown.stage if shown.settled else "")
            self.trial.show(shown)

    def _show_output(self, data: bytes) -> None:
        self.output.feed(data)
        self.output.refresh()

    def shut_down(self) -> None:
        """End what this panel has started."""
        self.asker.stop()
        self.trial.shut_down()
