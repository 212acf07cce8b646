"""A reader of GPUs that does what a reader must not do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profiler.record import gpus
from profiler.record.clock import Clock
from profiler.record.gpus import GpuReader
from tests.fakes.sink import ListSink
from tests.waiting import until

PATIENCE = 30.0


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[GpuReader, ListSink]]]:
    """A reader whose process runs that code in the place of ours."""
    monkeypatch.setattr(gpus, "AGAIN_S", (0.01,))
    monkeypatch.setattr(gpus, "DEATHS_TOLD", 10**6)
    started: list[GpuReader] = []

    def begin(code: str, program: str = sys.executable) -> tuple[GpuReader, ListSink]:
        sink = ListSink()
        one = GpuReader(sink, Clock(), 10.0, None)
        one._command = [program, "-c", "import os, signal, sys, time\n" + code]
        one.start()
        started.append(one)
        return one, sink

    yield begin
    for one in started:
        one.stop()
        one.join(0)


def gap(sink: ListSink) -> str:
    return until(lambda: [event.text for event in sink.events if event.kind == "gap"], PATIENCE)[0]


Start = Callable[..., tuple[GpuReader, ListSink]]


def test_what_makes_no_sense_ends_it(start: Start) -> None:
    _, sink = start("os.write(1, b'no frame at all' * 10); time.sleep(600)")
    assert "was ended: what it says makes no sense" in gap(sink)
    assert sink.meta["gpu"]["cause"] == "crashed"


def test_silence_is_said_and_ends_it(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "QUIET_S", 0.1)
    monkeypatch.setattr(gpus, "KILLED_S", 0.2)
    _, sink = start("time.sleep(600)")
    assert "was ended: it has not answered for" in gap(sink)
    assert sink.kinds()[0] == "source_stuck"


def test_one_that_ends_by_itself_is_told_with_its_last_words(start: Start) -> None:
    _, sink = start("sys.exit('no such module')")
    assert "ended (status 1: no such module)" in gap(sink)
    until(lambda: sink.kinds().count("gap") > 3, PATIENCE)  # it is tried again and again


def test_one_that_does_not_end_is_ended(start: Start) -> None:
    one, sink = start("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.write(2, b'there')\ntime.sleep(600)")
    process = until(lambda: one._process, PATIENCE)
    one.stop()
    assert one.join(0)  # it never said a word
    assert process.wait(PATIENCE) == -9
    assert sink.meta["gpu"]["cause"] == "not_asked" and sink.events == []


def test_one_that_cannot_be_started_is_said_and_tried_again(start: Start, tmp_path: Path) -> None:
    one, sink = start("sys.exit(1)", str(tmp_path / "program"))
    assert "cannot be started: [Errno 2] No such file" in gap(sink)
    assert sink.meta["gpu"]["cause"] == "crashed"
    (tmp_path / "program").symlink_to("/bin/false")
    until(lambda: "ended (status " in sink.events[-1].text, PATIENCE)
    one.stop()
    assert one.join(PATIENCE)


def test_a_stop_before_the_start_starts_nothing() -> None:
    sink = ListSink()
    one = GpuReader(sink, Clock(), 10.0, None)
    one.stop()
    one.start()
    assert one.join(PATIENCE) and one._process is None and sink.events == []


def test_much_on_stderr_holds_nothing_up(start: Start) -> None:
    _, sink = start("os.write(2, b'x' * 1_000_000 + b'\\nthe end'); sys.exit(3)")
    assert "(status 3: the end)" in gap(sink)
