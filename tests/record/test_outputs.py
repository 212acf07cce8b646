"""Where a run file is to be written: small, closed, odd, shared, or gone meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.paths import PROBE, own_command
from profiler.run.reader import Run
from tests.record.kills import SENDS
from tests.record.mounted import needs_mounts, on_file_system
from tests.record.running import PYTHON, controlled, environment, record, recording, script, wait_for
from tests.waiting import until

COUNTED = """
    import os, pathlib, sys, time
    log = open("log", "ab", buffering=0)
    for i in range(150):
        os.write(1, b"%04d" % i + b"." * 2000)
        log.write(b".")
        time.sleep(0.01)
    sys.exit(7)
    """


def argv(folder: Path, text: str, *options: str) -> list[str]:
    return own_command("record", "-o", str(folder / "small" / "run.stepscope"), *options, "--", PYTHON, "-S",
                       str(script(folder, text)))


@needs_mounts
@pytest.mark.parametrize("size", ["size=200k", "size=240k"])
def test_s09_the_command_goes_on_when_the_file_system_is_full(tmp_path: Path, size: str) -> None:
    """It has not enough room for what comes until the command ends, however slow the machine is."""
    text = SENDS.replace("TRACE", "0").replace('not os.path.exists("go")', "i < 400")
    done = on_file_system(tmp_path, size, argv(tmp_path, text, "--rate", "100"))
    assert done.returncode == 7 and done.stdout.endswith("x" * 1000 + "\n"), done.stderr
    told = done.stderr.splitlines()
    assert len(told) == 2 and "has stopped, the command goes on" in told[0] and "the disk is full" in told[0]
    assert "the recording is incomplete" in told[1]
    with Run.open(tmp_path / "kept" / "run.stepscope") as run:
        (track,) = run.find("step.index")
        kept = run.values(track.id)[1].tolist()
        assert kept == list(range(len(kept))) and len(kept) > 5 and run.state == "partial"


@needs_mounts
@pytest.mark.parametrize("count", range(2, 7))
def test_s09_no_inodes_left(tmp_path: Path, count: int) -> None:
    done = on_file_system(tmp_path, f"size=20M,nr_inodes={count}", argv(tmp_path, COUNTED))
    if done.returncode == 2:
        assert len(done.stderr.splitlines()) == 1 and "cannot write" in done.stderr
        assert not (tmp_path / "log").exists() and not list((tmp_path / "kept").iterdir())
        return
    assert done.returncode == 7, done.stderr
    with Run.open(tmp_path / "kept" / "run.stepscope") as run:
        assert run.state == "partial"
        assert ("incomplete" in done.stderr) != (run.meta.get("exit", {}).get("code") == 7)


@needs_mounts
@pytest.mark.parametrize("options", [(), ("--control",), ("--force",)])
def test_s09_a_file_system_that_is_read_only_is_told_before_the_start(
        tmp_path: Path, options: tuple[str, ...]) -> None:
    done = on_file_system(tmp_path, "size=1M", argv(tmp_path, COUNTED, *options), read_only=True)
    assert done.returncode == 2 and "cannot be written to" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "log").exists()


@needs_mounts
def test_s09_a_spool_without_room_is_counted_and_the_command_goes_on(tmp_path: Path) -> None:
    path = script(tmp_path, f"""
        import os, sys, time
        sys.path.insert(0, {str(PROBE)!r})
        from _stepscope_probe.spool import Spool
        spool, now = Spool(os.environ["STEPSCOPE_SPOOL"]), time.monotonic_ns
        spool.write('["hello",{{"version":1,"pid":%d,"ppid":1,"t":%d,"python":"3.11","argv":["x"],'
                    '"rank":null,"world":null}}]\\n' % (os.getpid(), now()))
        last = now()
        for i in range(4000):
            t = now()
            spool.write('["step",%d,%d,%d,1,2,3,4,5,6,7,8,1,0,0,0]\\n' % (i, last, t))
            last = t
            if i % 50 == 0:
                time.sleep(0.02)
        time.sleep(0.6)
        spool.write('["said","end"]\\n')
        sys.exit(7)
        """)
    command = own_command("record", "-o", str(tmp_path / "run.stepscope"), "--", PYTHON, "-S", str(path))
    done = on_file_system(tmp_path, "size=64k", command, env={"TMPDIR": str(tmp_path / "small")})
    assert done.returncode == 7, done.stderr
    with Run.open(tmp_path / "run.stepscope") as run:
        steps = sum(len(run.values(track.id)[0]) for track in run.find("step.index"))
        dropped = sum(run.values(track.id)[1][-1] for track in run.find("recorder.dropped"))
        assert 0 < steps < 4000 and steps + dropped >= 4000
        assert "records_dropped" in [event.kind for event in run.events()]
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("how", ["file", "folder"])
@pytest.mark.parametrize("mode", [(), ("--control",)])
def test_s09_an_output_that_vanishes_is_told_at_once(tmp_path: Path, how: str, mode: tuple[str, ...]) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    path = script(tmp_path, """
        import os, sys, time
        open("up", "w").write("1")
        while not os.path.exists("go"):
            time.sleep(0.01)
        sys.exit(7)
        """)
    output, told = folder / "a.stepscope", tmp_path / "told"
    with told.open("wb") as err, \
            recording(tmp_path, "-o", str(output), *mode, "--", PYTHON, "-S", str(path), stderr=err,
                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        wait_for(tmp_path / "up")
        output.unlink() if how == "file" else shutil.rmtree(folder)
        until(lambda: told.read_text(), 60, "it is told")
        (tmp_path / "go").touch()
        assert process.wait(60) == 7
    lines = told.read_text().splitlines()
    assert len(lines) == 2 and f"{output} was moved, removed or replaced" in lines[0]
    assert "the command goes on" in lines[0] and "incomplete" in lines[1]
    assert not output.exists()


def test_s09_two_recorders_of_one_output(tmp_path: Path) -> None:
    """One records, the other is refused before its command starts; --force takes no run that is recorded."""
    path = script(tmp_path, "import sys; open(sys.argv[1], 'w').write('1'); sys.stdin.read()")
    with controlled(tmp_path, "--", PYTHON, "-S", str(path), "first") as first:
        wait_for(tmp_path / "first")
        for options, words in (((), b"exists already"), (("--force",), b"is being recorded")):
            done = record(tmp_path, *options, "--", PYTHON, "-S", str(path), "second")
            assert done.returncode == 2 and words in done.stderr, done.stderr
        assert not (tmp_path / "second").exists()
        first.send("stop")
        assert first.wait() == 128 + signal.SIGINT
    with Run.open(tmp_path / "run.stepscope") as run:
        assert run.meta["command"][-1] == "first" and run.state == "finished"


def test_s09_recorders_that_begin_at_the_same_moment(tmp_path: Path) -> None:
    command = own_command("record", "-o", str(tmp_path / "run.stepscope"), "--", "sh", "-c", "echo $$ >> ran")
    started = [subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE)
               for _ in range(4)]
    told = [process.communicate(timeout=120)[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 2, 2, 2], told
    assert len((tmp_path / "ran").read_text().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ran", "run.stepscope", "tmp"]


@pytest.mark.parametrize("kind", ["to nothing", "to a run", "to a folder"])
def test_a_link_in_the_place_of_the_output(tmp_path: Path, kind: str) -> None:
    target, link = tmp_path / "target", tmp_path / "run.stepscope"
    if kind == "to a run":
        assert record(tmp_path, "--", "true").returncode == 0
        link.rename(target)
    elif kind == "to a folder":
        target.mkdir()
    before = target.read_bytes() if target.is_file() else None
    link.symlink_to(target)
    done = record(tmp_path, "--", "true")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    if kind == "to a run":
        assert record(tmp_path, "--force", "--", "true").returncode == 0
        assert not link.is_symlink()
        assert target.read_bytes() == before
        with Run.open(link) as run:
            assert run.state == "finished"


@pytest.mark.parametrize("length", [242, 247, 248, 255])
def test_long_names(tmp_path: Path, length: int) -> None:
    """The names of the files beside it must not get too long."""
    path = tmp_path / ("n" * (length - 10) + ".stepscope")
    done = record(tmp_path, "-o", str(path), "--", "true")
    if length <= 247:
        assert done.returncode == 0, done.stderr
        whole = tmp_path / ("w" * 245 + ".stepscope")
        path.rename(whole)
        with Run.open(whole) as run:
            assert run.state == "finished"
    else:
        assert done.returncode == 2 and b"File name too long" in done.stderr
        assert [p.name for p in tmp_path.iterdir()] == ["tmp"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are text")
def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    for options in ((), ("--json",)):
        done = record(folder, *options, "--", "sh", "-c", "exit 3", env=environment(tmp_path))
        assert done.returncode == 3, done.stderr
        with Run.open(folder / "run.stepscope") as run:
            assert run.meta["exit"]["code"] == 3
        (folder / "run.stepscope").unlink()
