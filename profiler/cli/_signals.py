"""Ends that come from outside."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = [signal.Signals(n) for n in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if n is not None]


class _Ended(BaseException):
    """A signal that ends the process came."""


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP end the process as ever, but only when what is inside has cleaned up."""
    came: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:  # a second one must not break into the cleaning
            raise _Ended

    try:
        before = {n: signal.signal(n, end) for n in _ENDING if signal.getsignal(n) == signal.SIG_DFL}
    except ValueError:  # not the main thread, which signals come to
        yield
        return
    try:
        yield
    except _Ended:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        os.kill(os.getpid(), came[0])
