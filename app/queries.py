"""Questions to the open run, answered on one worker thread.

For each key only the newest request waits: a chart that asks ten times a second
never piles up work. Answers of one key arrive in the order of their requests, on
the thread that made the `Queries`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

from profiler.errors import ProfilerError

Callback = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class _Request:
    key: str
    function: Callable[[], Any]
    callback: Callback
    failed: Callback | None
    generation: int


class _Worker(QThread):
    answered = Signal(object, object, object)  # request, result, error

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("queries")
        self._waiting: dict[str, _Request] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._last: Callable[[], Any] | None = None

    def put(self, request: _Request) -> bool:
        """Queue it; False when it took the place of a waiting one."""
        with self._changed:
            fresh = request.key not in self._waiting
            # Replacing keeps the key's place in the queue, so that no key starves another.
            self._waiting[request.key] = request
            self._changed.notify()
            return fresh

    def forget(self) -> None:
        with self._changed:
            self._waiting.clear()

    def stop(self, last: Callable[[], Any] | None) -> None:
        with self._changed:
            self._last = last
            self._stopping = True
            self._waiting.clear()
            self._changed.notify()

    def run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    break
                request = self._waiting.pop(next(iter(self._waiting)))
            try:
                result, error = request.function(), None
            except Exception as e:  # told to whoever asked; a query never ends the thread
                result, error = None, e
            self.answered.emit(request, result, error)
        if self._last is not None:
            self._last()


class Queries(QObject):
    """`submit` from the GUI thread; answers come back there."""

    failed = Signal(str, str)  # key, message: for a query whose caller did not ask to be told

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._generation = 0
        self._busy: dict[str, int] = {}
        self._worker = _Worker()
        self._worker.answered.connect(self._on_answered, Qt.ConnectionType.QueuedConnection)
        self._worker.start()

    def submit(
        self, key: str, function: Callable[[], Any], callback: Callback, failed: Callback | None = None
    ) -> None:
        """Run `function()` on the worker; `callback(result)` here. A waiting one of that key is dropped.

        `failed(error)` gets what it raised; without it the signal `failed` tells.
        """
        if self._worker.put(_Request(key, function, callback, failed, self._generation)):
            self._busy[key] = self._busy.get(key, 0) + 1

    def busy(self, key: str) -> bool:
        """Whether a request of that key waits or runs: then a periodic caller skips its turn."""
        return self._busy.get(key, 0) > 0

    def forget(self) -> None:
        """Drop all that waits, and the answers of what runs."""
        self._worker.forget()
        self._busy.clear()
        self._generation += 1

    def close(self, last: Callable[[], Any] | None = None) -> None:
        """End the thread, after the query that runs and `last()`."""
        self.forget()
        self._worker.stop(last)
        self._worker.wait()

    @Slot(object, object, object)
    def _on_answered(self, request: _Request, result: Any, error: Exception | None) -> None:
        if request.generation != self._generation:
            return
        self._busy[request.key] = max(0, self._busy.get(request.key, 0) - 1)
        if error is None:
            request.callback(result)
        elif request.failed is not None:
            request.failed(error)
        else:
            text = str(error) if isinstance(error, ProfilerError) else f"{type(error).__name__}: {error}"
            self.failed.emit(request.key, text)
