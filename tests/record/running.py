"""Starting real recordings in tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from profiler.paths import own_command
from profiler.run.reader import Run
from tests.waiting import until

PYTHON = sys.executable
LEAVES = """
    import os, pathlib, sys, time
    # a process that left the tree: its parent has ended, and it has a session of its own
    if os.fork():
        os.wait()
        while not pathlib.Path("pid").exists():
            time.sleep(0.01)
        sys.exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    if CLOSES:  # all its files
        os.closerange(0, 1024)
    pathlib.Path("pid.new").write_text(str(os.getpid()))
    pathlib.Path("pid.new").rename("pid")
    time.sleep(600)
    """


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Ours, with temporary files and runs inside `folder`."""
    (folder / "tmp").mkdir(exist_ok=True)
    unwanted = ("STEPSCOPE_", "PYTHONPATH")
    env = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    return {**env, "TMPDIR": str(folder / "tmp"), "STEPSCOPE_RUNS": str(folder / "runs"), **more}


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def record(folder: Path, *args: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """`stepscope record -o run.stepscope ARGS` in `folder`, to its end."""
    options = {"cwd": folder, "env": environment(folder), "capture_output": True, "timeout": 60, **options}
    return subprocess.run(own_command("record", "-o", str(folder / "run.stepscope"), *args), **options)


@contextmanager
def recording(folder: Path, *args: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The same, running. Killed at the end if it still runs."""
    options = {"cwd": folder, "env": environment(folder), "stdin": subprocess.DEVNULL, **options}
    process = subprocess.Popen(own_command("record", "-o", str(folder / "run.stepscope"), *args), **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class Controlled:
    """A recorder under `--control`: commands go in, events come out."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, do: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the recorder has closed its standard output"
        event: dict[str, Any] = json.loads(line)
        return event

    def wait(self) -> int:
        return self.process.wait(timeout=30)


@contextmanager
def controlled(folder: Path, *args: str, **options: Any) -> Iterator[Controlled]:
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with recording(folder, "--control", *args, **options) as process:
        yield Controlled(process)


@contextmanager
def opened(folder: Path) -> Iterator[Run]:
    run = Run.open(folder / "run.stepscope")
    try:
        yield run
    finally:
        run.close()


def wait_for(path: Path) -> str:
    """The text of a file that appears, once it has some."""
    return until(lambda: path.exists() and path.read_text(encoding="utf-8"), 30, f"{path} with text")


def running(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def end(pid: int) -> None:
    """End a process that a test left running on purpose."""
    if running(pid):
        os.kill(pid, signal.SIGKILL)
