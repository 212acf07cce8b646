"""What is no regular file: pipes, devices; and what goes on without end."""

from __future__ import annotations

import gzip
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.errors import Cancelled, TraceError
from profiler.importers import kineto
from profiler.importers.kineto import reader, source
from tests.importers.kineto.test_files import content, packed, write

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.fixture
def pipe() -> Iterator[tuple[Path, int]]:
    """A path that reads from a pipe, and the end to write to."""
    out, to = os.pipe()
    yield Path(f"/dev/fd/{out}"), to
    os.close(out)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs /dev/fd")
@pytest.mark.parametrize("gz", [False, True])
def test_a_trace_through_a_pipe(pipe: tuple[Path, int], gz: bool) -> None:
    path, to = pipe
    data = gzip.compress(content(events=2000)) if gz else content(events=2000)

    def feed() -> None:
        with os.fdopen(to, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=feed)
    thread.start()
    [trace] = kineto.load(path)
    thread.join()
    assert (len(trace.host), trace.notes) == (2000, ())


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs /dev/fd")
def test_a_pipe_whose_writer_is_silent_can_be_given_up(pipe: tuple[Path, int]) -> None:
    path, to = pipe
    asked: list[bool] = []

    def cancel() -> bool:
        asked.append(True)
        return len(asked) > 1

    with pytest.raises(Cancelled):
        kineto.load(path, cancel=cancel)
    os.close(to)


@on_posix
def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_WRITER", 0.0)
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(TraceError, match="empty"):
        kineto.load(tmp_path / "a.json")


@on_posix
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_not_read(path: str) -> None:
    with pytest.raises(TraceError, match="no file but a device"):
        kineto.load(Path(path))


@pytest.mark.parametrize("blank", [b" ", b"\0"])
def test_blanks_in_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: bytes) -> None:
    monkeypatch.setattr(reader, "LONGEST", 3 * source.BLOCK)
    for start in (b"", content()[:-120]):  # cut or whole: where it is cut is told from its beginning
        data = blank * (source.BLOCK + 7) + (start or content())
        [trace] = kineto.load(write(tmp_path, "a.json", data))
        assert len(trace.host) in (2, 3)
    assert trace.losses.truncated_at is not None and trace.losses.truncated_at > source.BLOCK
    with pytest.raises(TraceError, match="no trace: it begins with"):
        kineto.load(write(tmp_path, "b.json", blank * (5 * source.BLOCK) + content()))


def test_what_is_left_of_a_member_that_is_no_trace_is_bounded_too(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of it is unpacked to get behind it."""
    monkeypatch.setattr(source, "FREE", 1 << 20)
    path = write(tmp_path, "a.tar.gz", gzip.compress(packed({"a.txt": bytes(100) + b"x" * (8 << 20),
                                                             "b.json": content()})))
    with pytest.raises(TraceError) as caught:
        kineto.load(path)
    assert "a.txt" in str(caught.value)
