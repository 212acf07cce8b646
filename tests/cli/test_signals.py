"""Ends from outside, while an experiment runs."""

from __future__ import annotations

import os
import signal

import pytest

from profiler.cli._signals import terminated_as_interrupt


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_only_the_first_signal_interrupts(first: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGINT)
    cleaned = 0
    with terminated_as_interrupt():
        try:
            os.kill(os.getpid(), first)
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(os.getpid(), number)
                cleaned += 1
    assert cleaned == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_ignored_stays_so() -> None:
    """As under nohup, whose terminal may be closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminated_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
