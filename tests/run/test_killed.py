"""A recorder that is killed leaves a run that opens, with all that it had committed, each sample once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.run.alive import process_start
from profiler.run.reader import Run
from profiler.run.writer import RunWriter, settle
from tests.run.planned import SECOND, START
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]

# Commits as fast as it can and says so after each. Its clock runs fast: each third commit writes blocks.
WRITER = """
import sys
from pathlib import Path
from profiler.run import filesystem
from profiler.run.writer import RunWriter
if sys.argv[3:]:
    filesystem.file_system = lambda path: sys.argv[3]
now = [0.0]
writer = RunWriter.create(Path(sys.argv[1]), {}, clock=lambda: now[0])
tracks = [writer.track("host.core", index=core) for core in range(5)]
i, start = 0, int(sys.argv[2])
while True:
    for _ in range(150):
        for track in tracks:
            writer.sample(track, start + i * 1_000_000, float(i))
        i += 1
    writer.event(start + i, "mark", "info", str(i))
    now[0] += 11
    writer.commit()
    sys.stdout.write(f"{i}\\n")
    sys.stdout.flush()
"""


def _start(path: Path, *file_system: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-S", "-c", WRITER, str(path), str(START), *file_system],
                            cwd=ROOT, text=True, stdout=subprocess.PIPE)


def _kill(child: subprocess.Popen[str], said: int = 0) -> int:
    """Kill; the number of samples per track whose commit it has told of."""
    child.kill()
    assert child.stdout is not None
    whole = [line for line in child.stdout.read().split("\n")[:-1] if line]
    child.wait()
    return int(whole[-1]) if whole else said


def _check(path: Path, committed: int) -> None:
    with Run.open(path) as run:
        assert run.state == "partial"
        if not committed:
            return
        assert len(run.tracks) == 5
        counts = set()
        for track in run.tracks:
            times, values = run.values(track.id)
            assert values.tolist() == [float(i) for i in range(len(values))]
            assert times.tolist() == [START + i * 1_000_000 for i in range(len(values))]
            series = run.series(track.id, points=10)
            assert (series.low.min(), series.high.max()) == (0, len(values) - 1)
            counts.add(len(values))
        assert len(counts) == 1
        assert committed <= counts.pop() == 150 * len(run.events()) <= committed + 10 * 150


@pytest.mark.parametrize("file_system", [(), ("nfs4",)])
def test_killed_at_any_moment(tmp_path: Path, file_system: tuple[str, ...]) -> None:
    rng = random.Random(11)
    for number in range(24):
        path = tmp_path / f"{number}.stepscope"
        child = _start(path, *file_system)
        assert child.stdout is not None
        said = 0
        for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 20, 40))):
            said = int(child.stdout.readline())
        for _ in range(rng.randrange(30_000)):
            pass  # somewhere inside the next commit
        committed = _kill(child, said)
        if path.exists():
            _check(path, committed)
            with Run.open(path) as run:
                assert ("journal_note" in run.meta) == bool(file_system and committed)
        else:
            assert committed == 0
        if committed and number % 3 == 0:
            settle(path)
            _check(path, committed)
            assert not list(tmp_path.glob(f"{number}.stepscope-*"))


def test_killed_with_a_reader_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    child = _start(path)
    assert child.stdout is not None
    said = int(child.stdout.readline())
    with Run.open(path) as run:
        assert run.state == "recording"
        seen = 0
        while said < 150 * 60:
            run.refresh()
            values = run.values(1)[1]
            assert len(values) >= seen and values.tolist() == [float(i) for i in range(len(values))]
            seen = len(values)
            said = int(child.stdout.readline())
        committed = _kill(child, said)
        until(lambda: run.refresh() and run.state == "partial")
        assert len(run.values(1)[0]) >= committed
        _check(path, committed)


def test_killed_before_anything_was_created(tmp_path: Path) -> None:
    for _ in range(8):
        child = _start(tmp_path / "a.stepscope")
        until(lambda: list(tmp_path.iterdir()))
        _kill(child)
        if (tmp_path / "a.stepscope").exists():
            _check(tmp_path / "a.stepscope", 0)
        for file in tmp_path.iterdir():
            file.unlink()


def test_another_process_with_the_same_pid_is_not_the_recorder(tmp_path: Path) -> None:
    start = process_start()
    assert start is not None
    for state, meta in (("partial", {"recorder_start": start - 1}), ("recording", {}),
                        ("partial", {"recorder_pid": -1}), ("partial", {"recorder_pid": "x"}),
                        ("recording", {"machine": {"hostname": "elsewhere"}, "recorder_pid": -1})):
        path = tmp_path / "a.stepscope"
        writer = RunWriter.create(path, {"recorder_pid": os.getpid(), "recorder_start": start, **meta})
        with Run.open(path) as run:
            assert run.state == state, meta
        if "machine" in meta:
            writer.commit()
            long_ago = 1_000_000
            for file in tmp_path.iterdir():
                os.utime(file, (long_ago, long_ago))
            with Run.open(path) as run:
                assert run.state == "partial"
        writer.finish("finished", START + SECOND)
        path.unlink()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_zombie_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    until(lambda: process_start(child.pid) is None)
    child.wait()
    assert process_start(child.pid) is None


def test_s09_a_copy_without_its_wal_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, {"recorder_pid": 2**22 + 1})
    track = writer.track("host.cpu")
    for i in range(2520):
        writer.sample(track, START + i * SECOND, float(i))
    writer.commit()
    copies = tmp_path / "copies"
    copies.mkdir()
    whole, torn = copies / "whole.stepscope", copies / "torn.stepscope"
    for copy in (whole, torn):
        copy.write_bytes(path.read_bytes())
    whole.with_name("whole.stepscope-wal").write_bytes(path.with_name("a.stepscope-wal").read_bytes())
    with Run.open(whole) as run:
        assert len(run.values(track)[0]) == 2520 and run.lacks is None
    with Run.open(torn) as run:
        assert (run.state, run.tracks) == ("partial", [])
        assert run.lacks is not None and run.lacks.startswith("torn.stepscope-wal is not beside it")
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert run.lacks is None
