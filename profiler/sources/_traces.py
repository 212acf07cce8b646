"""Large traces are compressed beside the reading of steps: a recorder that is killed meanwhile has those."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

AT_ONCE = 4 << 20  # bytes that are compressed in some tens of milliseconds


class Beside:
    """Work that takes long, one after the other in a thread that begins with the first of it."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, work: Callable[[], None]) -> None:
        """Have it done. It must not raise."""
        if self._thread is None:
            # a daemon: a disk that hangs must not keep the recorder alive
            self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
            self._thread.start()
        self._work.put(work)

    def end(self) -> None:
        """Wait for all of it."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
