"""A large trace is compressed beside the reading of steps."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import pytest

from profiler.sources import spool as module
from tests.sources.spooling import Spool

ABOUT = {"steps": [1, 2], "size": 19, "valid": True, "note": ""}


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    monkeypatch.setattr(module, "AT_ONCE", 10)
    return Spool(tmp_path)


def test_s09_steps_are_read_while_a_large_trace_is_compressed(spool: Spool,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, compressed = threading.Event(), module.compressed

    def slow(path: Path) -> bytes:
        assert go_on.wait(60)
        return compressed(path)

    monkeypatch.setattr(module, "compressed", slow)
    for name in ("a.json", "b.json"):
        (spool.directory / name).write_bytes(b'{"traceEvents": []}')
        spool.write(["trace", spool.t, spool.t + 5, name, ABOUT])
    spool.write(spool.step(0))
    sink = spool.read()
    assert len(sink.values("step.wall")) == 1 and not sink.attachments
    go_on.set()
    spool.source.close(sink, spool.clock)
    assert [(told.name, gzip.decompress(data)) for told, data in sink.attachments] == \
        [("a.json", b'{"traceEvents": []}'), ("b.json", b'{"traceEvents": []}')]
    assert [p.name for p in spool.directory.iterdir()] == ["70.0.spool"]


def test_t18_a_trace_that_memory_cannot_hold_is_told(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bytes:
        raise MemoryError

    monkeypatch.setattr(module, "compressed", refused)
    (spool.directory / "a.json").write_bytes(b'{"traceEvents": []}')
    spool.write(["trace", spool.t, spool.t + 5, "a.json", ABOUT], spool.step(0))
    sink = spool.read()
    spool.source.close(sink, spool.clock)
    lost = [event for event in sink.events if event.kind == "trace_lost"]
    assert len(lost) == 1 and "memory" in lost[0].text
    assert len(sink.values("step.wall")) == 1
