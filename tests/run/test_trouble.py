"""A run file that cannot be written for a while, or is not there any more."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import RunError
from profiler.run import files, filesystem
from profiler.run import writer as module
from profiler.run.pending import MOST_WAITING
from profiler.run.place import identity, moved
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.run.planned import SECOND, START, Clock

GONE = 2**22 + 1  # no process has this number


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.stepscope"


def begin(path: Path, clock: Clock, **more: Any) -> RunWriter:
    return RunWriter.create(path, {"recorder_pid": GONE, "name": "full"}, clock=clock, **more)


def tick(writer: RunWriter, clock: Clock, number: int) -> None:
    """A second of recording: one sample, some output, a commit."""
    writer.sample(1, START + number * SECOND, float(number))
    writer.output(START + number * SECOND, b"x" * 500)
    clock.now += 1
    writer.commit()


def test_s09_a_disk_that_has_room_again_is_recorded_on(path: Path, clock: Clock) -> None:
    writer = begin(path, clock, max_pages=60)
    writer.track("host.cpu")
    number = 0
    while writer.failed is None:
        tick(writer, clock, number)
        number += 1
    stopped = number
    assert "the disk is full" in writer.failed and writer.incomplete is None
    writer.attach(START, "kineto", "t.json", b"x" * 1000)
    assert writer.track("gpu.util") == 2
    for pages in (0, 0, 100_000):  # attempts after 5, 15 and 35 s
        if pages:
            writer._db.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(15):
            tick(writer, clock, number)
            number += 1
    assert writer.failed is None
    assert writer.incomplete is not None and "samples are missing: the disk is full" in writer.incomplete
    goes_on = number
    for _ in range(5):
        tick(writer, clock, number)
        number += 1
    writer.finish("finished", START + number * SECOND)
    assert writer.failed is None
    with Run.open(path) as run:
        assert run.state == "finished" and [track.metric for track in run.tracks] == ["host.cpu", "gpu.util"]
        kept = [int(value) for value in run.values(1)[1]]
        missing = sorted(set(range(number)) - set(kept))
        assert missing == list(range(missing[0], missing[-1] + 1))
        assert missing[0] == stopped and missing[-1] < goes_on
        told = {event.kind: event for event in run.events()}
        assert told["recording_gap"].data == {"samples": len(missing), "t0_ns": START + missing[0] * SECOND,
                                              "t1_ns": START + missing[-1] * SECOND}
        assert "t.json" in told["trace_lost"].text and not run.attachments()
        assert len(run.output()) == len(kept)


def test_s09_what_fails_once_costs_nothing(path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = begin(path, clock)
    writer.track("host.cpu")
    for place in ("_write_pending", "_flush"):
        works, failures = getattr(writer, place), [3]

        def fails(*args: Any, works: Any = works, failures: list[int] = failures) -> None:
            failures[0] -= 1
            if failures[0] == 0:
                raise sqlite3.OperationalError("disk I/O error")
            works(*args)

        monkeypatch.setattr(writer, place, fails)
    for number in range(200):
        tick(writer, clock, number)
        assert writer.failed is None
    writer.finish("finished", START)
    assert writer.failed is None and writer.incomplete is None
    with Run.open(path) as run:
        assert run.values(1)[1].tolist() == [float(number) for number in range(200)]


def test_s09_a_trace_without_room_does_not_end_the_recording(path: Path, clock: Clock) -> None:
    writer = begin(path, clock, max_pages=60)
    writer.track("host.cpu")
    tick(writer, clock, 0)
    writer.attach(START, "kineto", "t.json", b"\x1f\x8b" + bytes(1 << 20))
    tick(writer, clock, 1)
    assert writer.failed is None
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert run.values(1)[1].tolist() == [0, 1] and not run.attachments()
        (event,) = run.events()
        assert (event.kind, event.text) == ("trace_lost", "t.json cannot be kept: the disk is full")


def test_a_disk_that_stays_full_takes_no_memory(path: Path, clock: Clock) -> None:
    writer = begin(path, clock, max_pages=60)
    writer.output(START, bytes(1 << 20))
    writer.commit()
    assert writer.failed is not None
    for number in range(3000):
        writer.set_meta("anchors", [number])
        writer.sample(1, START, 1.0)
        writer.output(START, b"x")
    assert len(writer._pending.rows) == 1 and not writer._pending.samples
    for _ in range(2 * MOST_WAITING):
        writer.event(START, "mark", "info", "x")
    assert len(writer._pending.rows) <= MOST_WAITING + 1


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "folder"])
def test_s09_a_file_that_is_not_in_its_place_is_told(tmp_path: Path, clock: Clock, how: str) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / "a.stepscope"
    writer = begin(path, clock)
    writer.track("host.cpu")
    tick(writer, clock, 0)
    assert writer.failed is None
    if how == "removed":
        path.unlink()
    elif how == "moved":
        path.rename(tmp_path / "b.stepscope")
    elif how == "folder":
        shutil.rmtree(folder)
    if how == "replaced":  # by another recording of the same name
        path.unlink()
        for beside in folder.iterdir():
            beside.unlink()
        other = begin(path, Clock())
        other.event(START, "mark", "info", "of the other")
        other.commit()
    tick(writer, clock, 1)
    assert writer.failed == f"{path} was moved, removed or replaced while it was recorded"
    tick(writer, clock, 2)
    writer.finish("finished", START)
    if how == "replaced":
        with Run.open(path) as run:
            assert [event.text for event in run.events()] == ["of the other"]
        other.event(START, "mark", "info", "2")
        other.finish("finished", START)
        assert other.failed is None
        with Run.open(path) as run:
            assert [event.text for event in run.events()] == ["of the other", "2"]
    else:
        assert not path.exists()


def test_a_file_on_a_server_may_be_numbered_anew(path: Path, clock: Clock,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch()
    assert identity(path) is not None and moved(path, (0, 0))
    monkeypatch.setattr(filesystem, "file_system", lambda path: "fuse.sshfs")
    assert identity(path) is None and not moved(path, None)
    writer = begin(path.with_name("b.stepscope"), clock)  # there SQLite looks itself
    shutil.copyfile(writer.path, path)
    path.replace(writer.path)
    writer.event(START, "mark", "info", "x")
    clock.now += 0.6
    writer.commit()
    assert writer.failed is not None and "it was moved, removed or replaced" in writer.failed


def test_s09_a_part_that_could_not_be_put_into_the_file_is_named(path: Path, clock: Clock,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    writer = begin(path, clock)
    writer.event(START, "mark", "info", "x")
    writer.commit()
    monkeypatch.setattr(module, "leave_wal", lambda db, seconds: False)
    with Run.open(path):  # or the last one to close it would
        writer.finish("finished", START)
    assert writer.failed is not None and f"{path}-wal belongs to {path}" in writer.failed


def test_s09_a_file_that_cannot_begin_is_not_left(path: Path, clock: Clock,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(db: sqlite3.Connection, path: Path) -> tuple[bool, None]:
        path.with_name(path.name + "-wal").touch()
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(module, "enter_wal", refused)
    with pytest.raises(RunError, match=r"cannot write .*: disk I/O error"):
        begin(path, clock)
    assert not list(path.parent.iterdir())


def test_s09_what_a_killed_recorder_had_begun_to_make_goes(path: Path, clock: Clock) -> None:
    old, young = f".old.stepscope.{GONE}.new", f".young.stepscope.{GONE}.new"
    kept = [young, f".mine.{os.getpid()}.new", ".mine.new", f"mine.{GONE}.new"]
    for name in (old, f"{old}-journal", *kept):
        path.with_name(name).touch()
        if name != young:
            os.utime(path.with_name(name), (1e9, 1e9))
    begin(path, clock).finish("finished", START)
    assert {file.name for file in path.parent.iterdir()} == {path.name, *kept}


def test_s09_a_disk_that_fills_up_while_the_file_is_made_leaves_nothing(
        path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(new: Path, path: Path, overwrite: bool) -> None:
        new.with_name(new.name + "-journal").touch()  # as SQLite does that could not undo a change
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "place", full)
    with pytest.raises(RunError, match="No space left on device"):
        begin(path, clock)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("replaced", [False, True])
def test_s09_a_wal_that_is_cleaned_away_costs_nothing(path: Path, clock: Clock, replaced: bool) -> None:
    writer = begin(path, clock)
    writer.track("host.cpu")
    for number in range(5):
        tick(writer, clock, number)
    log = path.with_name(f"{path.name}-wal")
    log.unlink()
    if replaced:
        log.touch()
    for number in range(5, 10):
        tick(writer, clock, number)
    assert log.stat().st_size and writer.failed is None
    copy = path.with_name("copy.stepscope")  # as a killed recorder leaves it
    shutil.copyfile(path, copy)
    shutil.copyfile(log, f"{copy}-wal")
    writer.finish("finished", START)
    for file, state in ((copy, "partial"), (path, "finished")):
        with Run.open(file) as run:
            assert run.state == state and run.values(1)[1].tolist() == [float(n) for n in range(10)]
    assert not log.exists()
