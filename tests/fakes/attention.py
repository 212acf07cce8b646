"""What the binding is asked for, what its library lacks, and which calls hang: in the process of nvml_child.

A test of hanging calls would have to wait until they are late, and a busy machine makes others late too.
Here a call hangs exactly when the stand-in says so, and those that wait for it give up at once.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from profiler.sources import _find, _readings, _relay

ASKED: set[str] = set()
LACKING: set[str] = set()
TOLD_AFTER_S = 1e-9  # a call that hangs is told of at the next tick
ROOM = 64


def listen() -> None:
    """Keep the names of the symbols that the binding looks up; those in LACKING are not there."""
    import pynvml

    look_up = pynvml._nvmlGetFunctionPointer

    def asked(name: str) -> Any:
        ASKED.add(name)
        if name in LACKING:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return look_up(name)

    pynvml._nvmlGetFunctionPointer = asked


class _Hanging(ctypes.Structure):
    _fields_ = [("serial", ctypes.c_ulonglong), ("thread", ctypes.c_ulonglong)]


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libnvidia-ml.so.1")


def hanging() -> dict[int, int]:
    """Calls that hang now: serial number -> ident of their thread."""
    places = (_Hanging * ROOM)()
    count = _library().stand_in_hanging(places, ROOM)
    return {place.serial: place.thread for place in places[:count]}


class _Done(threading.Event):
    """Of a turn of calls. Waiting for it is given up when a call hangs that did not when it was made."""

    def __init__(self) -> None:
        super().__init__()
        self._before = hanging().keys()

    def wait(self, timeout: float | None = None) -> bool:
        since = time.monotonic()
        while not super().wait(0.001):
            late = timeout is not None and time.monotonic() - since > timeout  # at a lock of one that hangs
            if late or hanging().keys() - self._before:
                return self.is_set()
        return True


class _Thread(threading.Thread):
    """Joining it is given up when it hangs in a call."""

    def join(self, timeout: float | None = None) -> None:
        while self.is_alive() and self.ident not in hanging().values():
            super().join(0.002)


def attend() -> None:
    """Look out for calls that hang; and tell of every change, so that tests of very many see each."""
    _readings.MAX_EVENTS = 10**6
    _relay.threading = SimpleNamespace(Event=_Done, Lock=threading.Lock, Thread=threading.Thread)  # type: ignore
    _find.threading = SimpleNamespace(Thread=_Thread)  # type: ignore
    _find.time = SimpleNamespace(monotonic=lambda: 0.0)  # type: ignore
    _relay.TELL_S = TOLD_AFTER_S
    _find.PATIENCE_S = float("inf")


def settled(done: Callable[[], bool], limit_s: float = 60.0) -> bool:
    """Wait until no call hangs, and for the rest."""
    deadline = time.monotonic() + limit_s
    while (hanging() or not done()) and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()
