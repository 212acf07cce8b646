"""Threads of the target that could run and have no core."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from profiler.sources import host
from profiler.sources._usage import Usage, waited
from profiler.sources.host import HostSource
from tests.fakes.sink import ListSink


class Clock:
    """Stands still until a test moves it."""

    t = 1_000_000_000

    def now_ns(self) -> int:
        return self.t

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns


def test_threads_without_a_core_are_a_mean_number(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: dict[int, dict[int, int] | None] = {1: {1: 0, 11: 5_000_000_000}, 2: {2: 0}}
    tree = SimpleNamespace(pid=1, process=9, loops=set(), processes=lambda: [
        SimpleNamespace(pid=pid, create_time=lambda: 1.0) for pid in waits])
    monkeypatch.setattr(host, "usage", lambda process: Usage(1.0, 10, "python", 0))
    monkeypatch.setattr(host, "waited", lambda pid, most: waits[pid])
    source, sink, clock = HostSource(tree), ListSink(), Clock()  # type: ignore[arg-type]
    source.open(sink, clock)

    def second() -> list[float]:
        for _ in range(2):
            clock.t += 500_000_000
            source.read(sink, clock)
        return [value for _, value in sink.values("target.waiting")]

    waits[1] = {1: 1_000_000_000, 11: 5_500_000_000, 12: 9_000_000_000}  # 12: it may have waited before
    assert second() == [pytest.approx(1.5)]
    waits[2] = None  # too many to look at: missing, not zero
    assert len(second()) == 1
    waits[2] = {}
    assert len(second()) == 1
    assert second() == [pytest.approx(1.5), 0]


@pytest.mark.skipif(sys.platform != "linux", reason="the scheduler's counts are read through /proc")
def test_the_scheduler_counts_each_thread_of_a_process() -> None:
    own = waited(os.getpid(), 1000)
    assert own is not None and os.getpid() in own and all(ns >= 0 for ns in own.values())
    assert waited(os.getpid(), 0) is None and waited(2**22 + 1, 10) == {}
