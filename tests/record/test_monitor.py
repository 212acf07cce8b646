"""Recording without a command."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from profiler.paths import own_command
from tests.record.running import PYTHON, environment, opened
from tests.waiting import until


def monitor(folder: Path, *args: str) -> list[str]:
    return own_command("monitor", "-o", str(folder / "run.stepscope"), *args)


def test_ends_after_its_duration(tmp_path: Path) -> None:
    done = subprocess.run(monitor(tmp_path, "--duration", "0.8"), env=environment(tmp_path),
                          capture_output=True, timeout=30, check=False)
    assert done.returncode == 0
    assert done.stdout == b""
    with opened(tmp_path) as run:
        assert run.meta["kind"] == "monitor"
        assert run.meta["exit"] == {"code": None, "signal": None, "reason": "duration"}
        assert run.state == "finished"
        assert run.find("host.cpu")
        assert run.processes == []


def test_ends_with_the_watched_process_and_sends_it_nothing(tmp_path: Path) -> None:
    watched = subprocess.Popen([PYTHON, "-c", "input()"], stdin=subprocess.PIPE)
    with subprocess.Popen(monitor(tmp_path, "--pid", str(watched.pid)), env=environment(tmp_path),
                          stderr=subprocess.DEVNULL) as recorder:
        until(lambda: (tmp_path / "run.stepscope").exists() and _has(tmp_path, "target.cpu"))
        assert watched.poll() is None
        watched.communicate(b"\n", timeout=60)
        assert recorder.wait(timeout=30) == 0
    assert watched.returncode == 0
    with opened(tmp_path) as run:
        assert [process.pid for process in run.processes] == [watched.pid]
        assert run.meta["exit"]["reason"] == "ended"


def test_interrupt_ends_it_well(tmp_path: Path) -> None:
    with subprocess.Popen(monitor(tmp_path), env=environment(tmp_path),
                          stderr=subprocess.DEVNULL) as recorder:
        until(lambda: (tmp_path / "run.stepscope").exists() and _has(tmp_path, "host.cpu"))
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(timeout=30) == 0
    with opened(tmp_path) as run:
        assert run.state == "finished"


def test_no_such_process(tmp_path: Path) -> None:
    done = subprocess.run(monitor(tmp_path, "--pid", "4194999"), env=environment(tmp_path),
                          capture_output=True, timeout=30, check=False)
    assert done.returncode == 2
    assert b"there is no process 4194999" in done.stderr
    assert not (tmp_path / "run.stepscope").exists()


def _has(folder: Path, metric: str) -> bool:
    with opened(folder) as run:
        return bool(run.find(metric))
