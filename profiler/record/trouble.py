"""Tells the user, at once, that the run file cannot be written, and when it can be again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from profiler.record.control import Control
from profiler.run.writer import RunWriter

STOPPED = "the recording has stopped"


class Trouble:
    """Looks at a writer after each commit. `notify` takes lines for the user; `control` tells a window."""

    def __init__(self, writer: RunWriter, notify: Callable[[str], None], control: Control | None) -> None:
        self._writer = writer
        self._notify = notify
        self._control = control
        self._told = False

    def look(self) -> None:
        failed = self._writer.failed
        if failed is not None and not self._told:
            self.stopped(failed)
        elif failed is None and self._told:
            missing = self._writer.incomplete or "nothing is missing"
            self._notify(f"the recording goes on. {missing}")
            if self._control is not None:
                self._control.tell("resumed", message=missing)
        self._told = failed is not None

    def warn(self, texts: deque[str]) -> None:
        """Tell the user what these say, and take them."""
        while texts:
            self._notify(texts.popleft())

    def stopped(self, why: str) -> None:
        """The recording is over, or pauses: the command does not."""
        self._notify(f"{STOPPED}, the command goes on: {why}")
        if self._control is not None:
            self._control.tell("error", message=f"{STOPPED}: {why}")
