"""Waking the main loop: signals, control commands, descriptors."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

ENDING = ("SIGTERM", "SIGHUP")  # ask us to end
TERMINAL = ("SIGINT", "SIGQUIT")  # keys: the terminal sends them to the target as well


class Wake:
    """Sleeps until a time, a signal, a call of `wake` from another thread, or a descriptor.

    Signals are taken while it is open; those that were ignored before stay so,
    for us and for the target (nohup). Taken ones are back at their defaults in
    a child that runs another program.
    """

    def __init__(self) -> None:
        self.signals: list[int] = []
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old: dict[int, Any] = {}
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # then nobody tells how the target ended
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for name in (*ENDING, *TERMINAL):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                self._old[number] = signal.signal(number, self._take)

    def wake(self) -> None:
        """From any thread."""
        with suppress(OSError):
            os.write(self._write, b"\0")

    def wait(self, until_ns: int, fds: Sequence[int] = ()) -> None:
        """Until `until_ns` of the monotonic clock, or something happens."""
        ready = readable([self._read, *fds], max(0.0, (until_ns - time.monotonic_ns()) / 1e9))
        if self._read in ready:
            with suppress(BlockingIOError):
                while os.read(self._read, 1024):
                    pass

    def take_signals(self) -> list[int]:
        """Those that came since the last call."""
        taken, self.signals = self.signals, []
        return taken

    def close(self) -> None:
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.signals.append(number)


def readable(fds: Sequence[int], timeout_s: float) -> list[int]:
    """Those of `fds` that have something to read, or have ended; waits so long for the first."""
    if not hasattr(select, "poll"):
        return select.select(fds, [], [], timeout_s)[0]
    poll = select.poll()  # select takes no number above 1023, and we may inherit more than that
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(math.ceil(timeout_s * 1000))]
