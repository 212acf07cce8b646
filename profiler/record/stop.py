"""Ending the processes that we started, in stages: interrupt, terminate, kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

# (signal, seconds until the next stage). Ended for certain within five seconds.
STAGES = ((signal.SIGINT, 2.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 2.0))
LEFTOVER_STAGES = ((signal.SIGTERM, 0.5), (signal.SIGKILL, 2.0))
KILL_STAGES = ((signal.SIGKILL, 2.0),)


def carriers(variable: str, value: str) -> list[psutil.Process]:
    """Living processes that were started with `variable`=`value` in their environment, ours aside.

    The name of a recording's private folder tells its processes for certain,
    those that left the tree included. Linux only: elsewhere empty.
    """
    wanted = f"{variable}={value}".encode()
    found = []
    own_uid, own_pid = os.getuid(), os.getpid()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, psutil.Error):
            if int(folder.name) == own_pid or folder.stat().st_uid != own_uid:
                continue
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(psutil.Process(int(folder.name)))
    return found


def alive(process: psutil.Process) -> bool:
    """Whether it is the same process (pid and start time) and no zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class StagedStop:
    """A stop on its way. `advance` is called often and never blocks.

    `members` tells the processes to end; it is asked anew at each stage, so that
    those started meanwhile are ended too.
    """

    def __init__(self, members: Callable[[], Iterable[psutil.Process]],
                 stages: tuple[tuple[signal.Signals, float], ...] = STAGES) -> None:
        self._members = members
        self._stages = list(stages)
        self._known: dict[tuple[int, float], psutil.Process] = {}
        self._next_ns = 0
        self.sent: list[signal.Signals] = []

    def hurry(self) -> None:
        """Kill at once."""
        self._stages = list(KILL_STAGES)
        self._next_ns = 0

    def survivors(self) -> list[psutil.Process]:
        """Those that still live, of all ever told."""
        return [process for process in self._known.values() if alive(process)]

    def advance(self) -> bool:
        """Go on; True when nothing is left, or nothing more can be done."""
        now = time.monotonic_ns()
        if self.sent and not self.survivors():
            self._collect()
            if not self.survivors():
                return True
        if now < self._next_ns:
            return False
        self._collect()
        living = self.survivors()
        if not living or not self._stages:
            return True
        number, seconds = self._stages.pop(0)
        self._next_ns = now + round(seconds * 1e9)
        self.sent.append(number)
        for process in living:
            with suppress(psutil.Error):
                process.send_signal(number)
        return False

    def _collect(self) -> None:
        for process in self._members():
            with suppress(psutil.Error):
                self._known.setdefault((process.pid, process.create_time()), process)
