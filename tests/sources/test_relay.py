"""A call that does not return costs itself alone, by real clocks. With the driver: test_nvml_hang."""

from __future__ import annotations

import threading
from typing import Any

from profiler.sources import _relay
from tests.fakes.sink import ListSink
from tests.waiting import until


class Job:
    def __init__(self, free: bool = True) -> None:
        self.free = threading.Event()
        self.reads = self.stuck_told = 0
        if free:
            self.free.set()

    def read(self, sink: Any, clock: Any) -> None:
        self.free.wait()
        self.reads += 1

    def stuck(self, sink: Any, clock: Any) -> None:
        self.stuck_told += 1


def test_a_job_that_does_not_return_is_left_behind_and_taken_up_again() -> None:
    first, hangs, last = Job(), Job(free=False), Job()
    relay = _relay.Relay((first, hangs, last), patience_s=0.2)
    sink, clock = ListSink(), object()
    for _ in range(3):
        relay.read(sink, clock)  # type: ignore[arg-type]
    assert hangs.reads == 0 and first.reads >= 1 and last.reads >= 1
    assert not relay.close()  # a call is under way
    hangs.free.set()
    until(lambda: hangs.reads == 1, timeout=60)

    def asked_again() -> bool:
        relay.read(sink, clock)  # type: ignore[arg-type]
        return hangs.reads >= 2

    until(asked_again, timeout=60)
    until(relay.close, timeout=60)
