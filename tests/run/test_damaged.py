"""A file that cannot be read says what is wrong with it, and never ends in another error than ours."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.errors import DamagedRunError, NotARunError, RunError, RunVersionError
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.run.planned import SECOND, START, Clock, read_all, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A finished run with something in every table."""
    path = tmp_path_factory.mktemp("good") / "a.stepscope"
    clock = Clock()
    writer = RunWriter.create(path, {"name": "good", "start_ns": START}, clock=clock)
    device = writer.add_device("GPU-1", 0, "H200")
    process = writer.add_process(1, "target")
    tracks = [writer.track("gpu.util", device=device), writer.track("host.core", process=process, index=1)]
    for i in range(3000):
        for track in tracks:
            writer.sample(track, START + i * SECOND // 10, (i * 7919 % 100) / 100)
        clock.now += 0.1
        if i % 10 == 0:
            writer.event(START + i, "mark", "info", f"mark {i}", data={"i": i})
            writer.output(START + i, b"step\n")
            writer.commit()
    writer.attach(START, "kineto", "t.json", random.Random(1).randbytes(5000))
    writer.finish("finished", START + 300 * SECOND)
    return path.read_bytes()


def test_each_has_its_own_error(tmp_path: Path, good: bytes) -> None:
    def error(name: str, data: bytes | None) -> RunError:
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(RunError) as caught:
            Run.open(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
        return caught.value

    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE meta (key, value)")
    newer = good[:60] + struct.pack(">i", 2) + good[64:]
    older = good[:60] + struct.pack(">i", 0) + good[64:]

    assert "no such file" in error("missing", None).message
    assert "folder" in error("folder", None).message
    assert "regular file" in error("pipe", None).message
    assert isinstance(error("empty", b""), NotARunError)
    assert isinstance(error("text", b"hello\n" * 1000), NotARunError)
    assert isinstance(error("short", b"SQL"), NotARunError)
    assert isinstance(error("other.db", None), NotARunError)
    assert "Update" in error("newer", newer).hint and isinstance(error("newer", newer), RunVersionError)
    assert isinstance(error("older", older), RunVersionError)
    assert isinstance(error("cut", good[: len(good) // 2]), DamagedRunError)
    assert not list(tmp_path.glob("*-shm")) and not list(tmp_path.glob("*-wal"))


def test_a_missing_table_or_a_view_in_its_place(tmp_path: Path, good: bytes) -> None:
    for change in ("DROP TABLE block", "DROP TABLE event; CREATE VIEW event AS SELECT 1",
                   "UPDATE meta SET value = '{' WHERE key = 'name'", "UPDATE track SET properties = '[]'"):
        path = tmp_path / "a.stepscope"
        path.write_bytes(good)
        with sqlite3.connect(path) as db:
            db.executescript(change)
        with pytest.raises(DamagedRunError):
            Run.open(path)


def test_damage_in_blocks(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "a.stepscope"
    for change in ("data = x'00'", "n = n + 1", "n = 'many'", "n = 1 << 60", "first = 'x'",
                   "data = 5"):
        path.write_bytes(good)
        with sqlite3.connect(path) as db:
            db.execute(f"UPDATE block SET {change}")
        with pytest.raises(DamagedRunError), Run.open(path) as run:
            run.values(run.tracks[0].id)


def _broken(good: bytes, rng: random.Random) -> Iterator[bytes]:
    for _ in range(60):
        yield good[: rng.randrange(len(good))]
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.choice((1, 3, 30, 300))):
            data[rng.randrange(100, len(data))] = rng.randrange(256)
        yield bytes(data)
    for _ in range(60):
        data = bytearray(good)
        start = rng.randrange(len(data))
        size = rng.choice((16, 4096, 20000))
        data[start : start + size] = rng.randbytes(size)
        yield bytes(data)
    for _ in range(30):
        data = bytearray(good)
        data[rng.randrange(100)] = rng.randrange(256)
        yield bytes(data)


def test_cut_and_garbled_files(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "a.stepscope"
    seen = set()
    for data in _broken(good, random.Random(5)):
        path.write_bytes(data)
        try:
            read_all(path)
        except RunError as error:
            seen.add(type(error))
    assert {DamagedRunError, NotARunError} <= seen


def _number_last_row(path: Path, table: str, number: int) -> None:
    """Give the last row of a small table another id, behind SQLite's back."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    page = (root - 1) * size
    kind, cells = data[page], int.from_bytes(data[page + 3:page + 5], "big")
    assert kind == 13 and cells > 2, "the table is one leaf"
    at = page + int.from_bytes(data[page + 6 + 2 * cells:page + 8 + 2 * cells], "big")
    while data[at] & 128:  # the length of the row
        at += 1
    assert data[at + 1] == cells
    data[at + 1] = number
    path.write_bytes(data)


@pytest.mark.parametrize("table", ["journal", "event", "output"])
def test_rows_that_come_again_at_each_look_do_not_pile_up(tmp_path: Path, table: str) -> None:
    path, clock = tmp_path / "a.stepscope", Clock()
    writer = RunWriter.create(path, {"start_ns": START}, clock=clock)
    track = writer.track("host.cpu_util")
    for i in range(6):
        writer.sample(track, START + i * SECOND, i)
        writer.event(START + i, "mark", "info", f"mark {i}")
        writer.output(START + i, b"step\n")
        writer.commit()
        clock.now += 0.1
    writer.close()

    def look(run: Run) -> int:
        run.latest(track)
        newest = run.events()[-1].id, run.output()[-1][0]
        return len(run.values(track)[0]) + len(run.events(newest[0])) + len(run.output(newest[1]))

    with Run.open(path) as run:
        assert [look(run) for _ in range(3)] == [6] * 3
    _number_last_row(path, table, 1)  # the newest is the first: those between are newer for ever
    with pytest.raises(DamagedRunError), Run.open(path) as run:
        look(run)


def test_garbled_wal(tmp_path: Path) -> None:
    """A -wal is taken up to its first damaged frame."""
    path, log = tmp_path / "a.stepscope", tmp_path / "a.stepscope-wal"
    writer = RunWriter.create(path, {})
    track = writer.track("host.cpu")
    for i in range(100):
        writer.sample(track, START + i, 1.0)
        writer.commit()
    main, whole = path.read_bytes(), log.read_bytes()
    writer.close()
    rng = random.Random(7)
    for _ in range(40):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 255
        (folder / path.name).write_bytes(main)
        (folder / log.name).write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
        assert read_all(folder / path.name) <= 100


READ = """
import os, sys
from pathlib import Path
from profiler.run.reader import Run
if os.getuid() == 0:  # root may write anywhere; nobody may not
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
with Run.open(Path(sys.argv[1])) as run:
    print(run.state, sum(len(run.values(track.id)[0]) for track in run.tracks))
"""


def _read_as_nobody(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", READ, str(path)], cwd=ROOT, text=True, capture_output=True,
                          check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.parametrize("kind", ["plain", "wal mode", "killed", "recording"])
def test_read_only_media(kind: str, tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="stepscope-test-"))
    try:
        path = folder / "a.stepscope"
        if kind == "killed":
            _killed(path, tmp_path)
        elif kind == "recording":
            writer = RunWriter.create(path, {})
            track = writer.track("host.cpu")
            for i in range(50):
                writer.sample(track, START + i, 1.0)
                writer.commit()
        else:
            write(path, [(START + i, 1.0) for i in range(50)])
        if kind == "wal mode":
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA journal_mode = WAL")
        path.chmod(0o444)
        folder.chmod(0o555)
        result = _read_as_nobody(path)
        state = {"killed": "partial", "recording": "recording"}.get(kind, "finished")
        assert (result.stdout.split(), result.stderr) == ([state, "50"], "")
        path.chmod(0o000)
        refused = _read_as_nobody(path)
        assert "cannot be read: permission denied" in refused.stderr.splitlines()[-1]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def _killed(path: Path, scratch: Path) -> None:
    """What a killed recorder leaves: the file and its -wal; the index of the -wal is lost in copying."""
    source = scratch / path.name
    writer = RunWriter.create(source, {"recorder_pid": 2**22 + 1})
    track = writer.track("host.cpu")
    for i in range(50):
        writer.sample(track, START + i, 1.0)
        writer.commit()
    log = source.with_name(source.name + "-wal")
    shutil.copyfile(source, path)
    shutil.copyfile(log, path.with_name(log.name))
    path.with_name(log.name).chmod(0o444)
    writer.close()
