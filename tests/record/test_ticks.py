"""Cadence and source threads."""

from __future__ import annotations

import threading
from typing import Any

from profiler.errors import DeviceError
from profiler.record.clock import Clock
from profiler.record.ticks import Cadence, SourceThread
from tests.waiting import until


def test_ticks_do_not_drift() -> None:
    cadence = Cadence(100, 1000)
    now = 1000
    for _ in range(1000):
        cadence.tick(now + 7)
        now += 7 + 30  # late by 7, and 30 long
        now += cadence.wait_ns(now)
    assert now == 1000 + 1000 * 100
    assert (cadence.ticks, cadence.missed, cadence.lateness_max_ns) == (1000, 0, 7)


def test_missed_ticks_are_counted_and_not_made_up_for() -> None:
    cadence = Cadence(100, 0)
    cadence.tick(0)
    assert cadence.wait_ns(450) == 0  # due at 400, late; those at 100, 200, 300 are missed
    assert cadence.missed == 3
    cadence.tick(450)
    assert cadence.take_recent() == 50
    assert cadence.take_recent() == 0
    assert cadence.wait_ns(451) == 49
    assert cadence.missed == 3


class Events:
    """A sink that keeps events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, t_ns: int, kind: str, severity: str, text: str, **more: Any) -> None:
        self.events.append((kind, severity, text))


class Counting:
    name = "counting"
    interval_ns: int | None = 1_000_000

    def __init__(self, fail_at: int | None = None, wrong: Exception | None = None) -> None:
        self.fail_at = fail_at
        self.wrong = wrong
        self.reads = 0
        self.closed = False

    def open(self, sink: Any, clock: Any) -> None:
        if self.wrong is not None and self.fail_at is None:
            raise self.wrong

    def read(self, sink: Any, clock: Any) -> None:
        self.reads += 1
        if self.fail_at == self.reads and self.wrong is not None:
            raise self.wrong

    def close(self, sink: Any, clock: Any) -> None:
        self.closed = True


def run(source: Any, sink: Any) -> SourceThread:
    thread = SourceThread(source, sink, Clock(), 10)
    thread.start()
    return thread


def test_a_source_is_read_until_stopped_then_closed() -> None:
    source, sink = Counting(), Events()
    thread = run(source, sink)
    until(lambda: source.reads > 5)
    thread.stop()
    assert thread.join(10)
    assert source.closed
    assert sink.events == []


def test_a_source_that_raises_is_off_with_one_event() -> None:
    for source in (Counting(3, ValueError("odd")), Counting(None, DeviceError("no library", "Install it"))):
        sink = Events()
        thread = run(source, sink)
        assert thread.join(10)
        assert source.closed
        assert source.reads == (source.fail_at or 0)
        (kind, severity, text), = sink.events
        assert (kind, severity) == ("source_off", "warning")
        assert text in ("the counting source is off: ValueError: odd",
                        "the counting source is off: no library. Install it")


def test_a_source_that_hangs_is_told_once_and_left_behind() -> None:
    release = threading.Event()

    class Hanging(Counting):
        def read(self, sink: Any, clock: Any) -> None:
            release.wait(30)

    source, sink = Hanging(), Events()
    thread = SourceThread(source, sink, Clock(), 10)
    thread.STUCK_NS = 1  # type: ignore[misc]
    thread.start()
    until(lambda: thread.cadence.ticks)
    until(lambda: (thread.watch(), sink.events)[1])
    thread.watch()
    assert [kind for kind, _, _ in sink.events] == ["source_stuck"]
    thread.stop()
    assert not thread.join(0)
    release.set()
    assert thread.join(10)
