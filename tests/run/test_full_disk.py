"""A disk that is full: told once, nothing is raised, and what was committed is there."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from profiler.errors import RunError
from profiler.run import files, filesystem
from profiler.run.reader import Run
from profiler.run.writer import RunWriter, append_result
from tests.run.planned import START, Clock

ROOT = Path(__file__).resolve().parents[2]


def _fill(writer: RunWriter, clock: Clock, ticks: int) -> int:
    """Write until it fails. Gives the number of samples whose commit went well."""
    track = writer.track("host.cpu")
    committed = 0
    for i in range(ticks):
        writer.sample(track, START + i, i / 7)
        writer.output(START + i, b"x" * 500)
        clock.now += 1
        writer.commit()
        if writer.failed is None:
            committed = i + 1
    return committed


@pytest.mark.parametrize("network", [False, True])
def test_no_page_left(tmp_path: Path, network: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if network:
        monkeypatch.setattr(filesystem, "file_system", lambda path: "nfs")
    path = tmp_path / "a.stepscope"
    clock = Clock()
    writer = RunWriter.create(path, {"name": "full", "recorder_pid": 2**22 + 1}, clock=clock, max_pages=60)
    committed = _fill(writer, clock, 1000)
    assert 20 < committed < 1000
    assert writer.failed is not None and "the disk is full" in writer.failed and str(path) in writer.failed
    told = writer.failed
    writer.event(START, "mark", "info", "x")
    writer.set_meta("name", "y")
    assert writer.track("gpu.util") == 2
    writer.commit()
    writer.finish("finished", START)
    writer.finish("finished", START)
    assert writer.failed == told
    with Run.open(path) as run:
        assert (run.state, run.meta["name"]) == ("partial", "full")
        assert run.values(1)[1].tolist() == [i / 7 for i in range(committed)]
        assert len(run.output()) == committed
    append_result(path, "diagnosis", {})


def test_no_room_to_finish(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, {"recorder_pid": 2**22 + 1}, max_pages=60)
    writer.event(START, "mark", "info", "kept")
    writer.commit()
    writer.output(START, bytes(1 << 20))
    writer.finish("finished", START)
    assert writer.failed is not None
    with Run.open(path) as run:
        assert run.state == "partial" and [event.text for event in run.events()] == ["kept"]


LIMITED = """
import resource, sys
from pathlib import Path
from profiler.run.writer import RunWriter
now = [0.0]
writer = RunWriter.create(Path(sys.argv[1]), {}, clock=lambda: now[0])
track = writer.track("host.cpu")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
committed = 0
for i in range(20000):
    writer.sample(track, i * 1_000_000_000, i / 7)
    writer.output(i, b"x" * 500)
    now[0] += 1
    writer.commit()
    if writer.failed is None:
        committed = i + 1
writer.finish("finished", 0)
print(committed)
print(writer.failed)
"""


@pytest.mark.parametrize("limit", [100_000, 300_000, 6_000_000])
def test_the_system_refuses(tmp_path: Path, limit: int) -> None:
    assert resource.RLIMIT_FSIZE is not None
    path = tmp_path / "a.stepscope"
    child = subprocess.run([sys.executable, "-S", "-c", LIMITED, str(path), str(limit)], cwd=ROOT, text=True,
                           capture_output=True, check=False)
    assert child.returncode == 0, child.stderr
    committed, told = child.stdout.splitlines()
    assert "cannot be written any more" in told and str(path) in told
    assert 5 < int(committed) < 20_000
    with Run.open(path) as run:
        assert run.state == "partial"
        assert run.values(1)[1].tolist() == [i / 7 for i in range(int(committed))]
        assert len(run.output()) == int(committed)


def test_no_room_to_begin(tmp_path: Path) -> None:
    code = ("import resource, sys; from pathlib import Path; from profiler.run.writer import RunWriter\n"
            "from profiler.errors import RunError\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
            "try: RunWriter.create(Path(sys.argv[1]), {})\n"
            "except RunError as error: print(error)")
    path = tmp_path / "a.stepscope"
    child = subprocess.run([sys.executable, "-S", "-c", code, str(path)], cwd=ROOT, text=True,
                           capture_output=True, check=True)
    assert "cannot write" in child.stdout and child.stderr == ""
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RunError):
        Run.open(path)


def test_a_run_opens_where_its_index_has_no_room(tmp_path: Path) -> None:
    """A recorder that met the full disk leaves a file in WAL mode; SQLite wants 32 kB to read it."""
    live, path = tmp_path / "live.stepscope", tmp_path / "a.stepscope"
    writer = RunWriter.create(live, {"recorder_pid": 2**22 + 1})
    writer.event(START, "mark", "info", "kept")
    writer.commit()
    with contextlib.closing(sqlite3.connect(live)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(live.read_bytes())
    writer.close()
    code = ("import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
            "from profiler.run.reader import Run\n"
            "with Run.open(sys.argv[1]) as run: print(run.state, [e.text for e in run.events()])")
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, text=True, capture_output=True,
                          check=False, timeout=60)
    assert done.stdout == "partial ['kept']\n", done.stderr


def test_the_reason_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def why(code: int, free: int) -> str:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = code
        monkeypatch.setattr(files.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
        return files.why_not_written(error, tmp_path / "a")

    assert why(sqlite3.SQLITE_IOERR_SHMSIZE, 0) == why(sqlite3.SQLITE_FULL, 1 << 30) == "the disk is full"
    assert "ulimit -f" in why(sqlite3.SQLITE_IOERR_WRITE, 1 << 30)
    assert why(sqlite3.SQLITE_IOERR_FSYNC, 1 << 30) == "disk I/O error"
