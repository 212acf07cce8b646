"""The test of a suggestion, as the strip shows it. It runs once the recording is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject

from app.document import Document
from app.experiment import CANCELLED, DOING, experiment_of
from app.live.verdict import VerdictData, remedy_text
from app.live.verdict_strip import VerdictStrip
from app.live.verify import outcome_parts
from app.widgets.basic import tip
from app.widgets.sentence import Part
from profiler.units import clock


class Trial(QObject):
    """Between the strip and the experiment that all screens share."""

    def __init__(self, document: Document, strip: VerdictStrip) -> None:
        super().__init__(strip)
        self._document, self._strip = document, strip
        self.verify = experiment_of(document)
        self.wanted = False  # as soon as the recording is over
        self._shown: VerdictData | None = None
        self._note = ""
        self._result: Mapping[str, Any] | None = None
        self.verify.started.connect(self._on_started)
        self.verify.progress.connect(self._on_progress)
        self.verify.finished.connect(self._on_result)
        self.verify.failed.connect(self._on_failed)
        strip.verify_pressed.connect(self._pressed)
        document.closed.connect(self.verify.cancel)
        self._update()

    def opened(self) -> None:
        """Another run: nothing is known of it."""
        self.verify.cancel()
        self.wanted, self._shown, self._note, self._result = False, None, "", None
        self._update()

    def ended(self) -> None:
        """The recording is over."""
        if self.wanted:
            self.wanted = False
            self._start()
        self._update()

    def show(self, data: VerdictData) -> None:
        self._shown = data
        if self._result is None and data.experiment:
            self._result = data.experiment
        self._update()

    def shut_down(self) -> None:
        self.verify.shut_down()

    def _pressed(self) -> None:
        if self.verify.running:
            self.verify.cancel()
        elif self._document.recording:
            self.wanted = not self.wanted
        else:
            self._start()
        self._update()

    def _start(self) -> None:
        path = self._document.path
        if path is not None:
            self.verify.start(path)

    def _on_started(self) -> None:
        """Here or on another screen."""
        self._note = "starting"
        if self.verify.kind == "verify":
            self._result = None
        self._update()

    def _on_progress(self, line: str) -> None:
        self._note = line
        self._update()

    def _on_result(self, result: Mapping[str, Any]) -> None:
        if self._document.path == self.verify.run:  # what it says is of no other run
            self._note = ""
            if self.verify.kind in ("", "verify"):
                self._result = result
        self._update()

    def _on_failed(self, text: str) -> None:
        if self._document.path == self.verify.run:
            self._note = text
        self._update()

    def _update(self) -> None:
        button, data = self._strip.verify, self._shown
        testable = data is not None and data.testable
        recording = self._document.recording
        button.setEnabled(testable or self.verify.running)
        if self.verify.running:
            text = "Cancel"
        elif recording:
            text = "Will verify after stop" if self.wanted else "Verify after stop"
        else:
            text = "Verify again" if self._result else "Verify"
        if button.text() != text:
            button.setText(text)
        yet = " yet" if recording or data is None else ""
        why = f"No finding names a setting that can be tried{yet}"
        button.setToolTip("" if button.isEnabled() else tip(why))
        self._strip.diagnose.setEnabled(data is not None and data.settled)
        self._show_words(data)

    def _show_words(self, data: VerdictData | None) -> None:
        remedy = data.remedy if data is not None else ""
        cause, advice = (data.cause, data.advice) if data is not None else ("", "")
        if remedy:
            head = [Part("Try "), Part(remedy, "t1", 600), Part(f": {cause}" if cause else "")]
        else:
            head = [Part(cause, "t1", 600)]
        if self.verify.running:
            text = f"{DOING[self.verify.kind]}, {clock(self.verify.elapsed_ns)}: {self._note}"
            self._strip.show_try(head, [Part(text, "acc")])
        elif self._result is not None:
            self._show_result(head, self._result)
        elif self._note:
            tone = "t2" if self._note in CANCELLED.values() else "err"
            self._strip.show_try(head, [Part(self._note, tone)])
        elif data is not None and data.prediction:
            self._strip.show_try(head, [Part(f"{data.prediction}, not verified", "t2")])
        else:
            self._strip.show_try(head, [Part(advice)])

    def _show_result(self, head: list[Part], result: Mapping[str, Any]) -> None:
        try:
            parts, badge = outcome_parts(result)
            if tried := result.get("remedy"):
                head = [Part("Tried "), Part(remedy_text(tried), "t1", 600)]
        except (KeyError, TypeError, ValueError, AttributeError):  # a damaged one, or of another version
            parts, badge = [Part("the result of a test in the run file cannot be read", "err")], None
        self._strip.show_try(head, parts, badge)
