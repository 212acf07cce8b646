"""Ends that come from outside."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = [signal.Signals(n) for n in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if n is not None]


class _Ended(BaseException):
    """A signal that ends the process came."""


@contextmanager
def handled(numbers: Iterable[int], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """These signals call `handler`; not where this is no main thread, which alone they come to."""
    before = {}
    with suppress(ValueError):
        before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP end the process as ever, but only when what is inside has cleaned up."""
    came: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:  # a second one must not break into the cleaning
            raise _Ended

    with suppress(_Ended), handled([n for n in ENDING if signal.getsignal(n) == signal.SIG_DFL], end):
        yield
    if came:
        os.kill(os.getpid(), came[0])


@contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP keep what was measured, as Ctrl-C does.

    The first signal ends it. Those that follow (a closed terminal sends several, a user is
    impatient) must not break into the stop of what runs, which takes seconds at most. Those
    that are ignored (nohup) stay so.
    """
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:
            raise KeyboardInterrupt

    with handled([n for n in (*ENDING, signal.SIGINT) if signal.getsignal(n) != signal.SIG_IGN], interrupt):
        yield
