"""Every way in which a script can end, and all it can print: as without us."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from profiler.paths import own_command
from tests.record.beside import LONG, same
from tests.record.running import (
    LEAVES,
    PYTHON,
    controlled,
    end,
    environment,
    opened,
    record,
    recording,
    running,
    script,
    wait_for,
)
from tests.waiting import until

ENDS = {
    "falls off the end": "print('x')",
    "status 3": "raise SystemExit(3)",
    "status 300": "import sys; sys.exit(300)",
    "status -1": "import sys; sys.exit(-1)",
    "a text": "import sys; sys.exit('no data')",
    "none": "import sys; sys.exit(None)",
    "exit at once": "import os; print('lost'); os._exit(4)",
    "an exception": "print('x'); {}['y']",
    "a syntax error": "print('x'",
    "abort": "import os; os.abort()",
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "raise KeyboardInterrupt",
    "a signal of no name": "import os; os.kill(os.getpid(), 40)",
    "another program": "import os; print('a', flush=True); os.execlp('sh', 'sh', '-c', 'echo b; exit 6')",
    "another Python": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'exit(9)'])",
    "an error at exit": "import atexit; atexit.register(lambda: 1 / 0); print('x')",
    "a closed output": "import os, sys; os.close(1); os.close(2); sys.exit(5)",
    "an error in a thread":
        "import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    "a recursion": "import sys\ndef f(): f()\ntry: f()\nexcept RecursionError: sys.exit(8)",
    "no memory": "import sys\ntry: bytearray(1 << 62)\nexcept (MemoryError, OverflowError): sys.exit(7)",
}


@pytest.mark.parametrize("how", ENDS)
def test_every_end_is_the_commands_own(tmp_path: Path, how: str) -> None:
    same(tmp_path, PYTHON, "-c", ENDS[how])


def test_a_hang_at_exit_is_ended_by_a_stop(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import atexit, pathlib, time
        def hang():
            pathlib.Path("at exit").write_text("1")
            while True:
                try:
                    time.sleep(600)
                except KeyboardInterrupt:
                    pass
        atexit.register(hang)
        """)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        pid = recorder.event()["pid"]
        wait_for(tmp_path / "at exit")
        recorder.send("stop")
        assert recorder.wait() == 128 + signal.SIGTERM
        assert not running(pid)


def test_threads_that_outlive_main_are_waited_for(tmp_path: Path) -> None:
    code = ("import threading, time\n"
            "def later():\n  time.sleep(0.4)\n  print('later')\n"
            "threading.Thread(target=later).start()\nprint('main')")
    assert same(tmp_path, PYTHON, "-c", code).stdout == b"main\nlater\n"


def test_a_daemon_goes_on_and_the_recording_ends(tmp_path: Path) -> None:
    """Forked twice, with a session of its own, all its files closed."""
    path = script(tmp_path, LEAVES.replace("CLOSES", "True"))
    assert record(tmp_path, "--", PYTHON, str(path), timeout=LONG).returncode == 0
    pid = int((tmp_path / "pid").read_text())
    try:
        assert running(pid)
    finally:
        end(pid)


# Output

FLOOD = """if 1:
    import os, sys
    piece = b"0123456789abcde\\n" * 65536
    for i in range(int(sys.argv[1])):
        done = 0
        while done < len(piece):
            done += os.write(1 + i % 2, piece[done:])
    """
MIB = 1 << 20


@pytest.mark.parametrize("pieces", [32, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_flood_through_pipes_is_not_touched(tmp_path: Path, pieces: int) -> None:
    """It goes past us: nothing is kept, nothing waits for us."""
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        done = record(tmp_path, "--", PYTHON, "-c", FLOOD, str(pieces), capture_output=False, stdout=stdout,
                      stderr=stderr, timeout=LONG)
    assert done.returncode == 0
    assert out.stat().st_size == pieces // 2 * MIB
    assert pieces // 2 * MIB < err.stat().st_size < pieces // 2 * MIB + 1000
    assert (tmp_path / "run.stepscope").stat().st_size < 8 * MIB


@pytest.mark.parametrize("pieces", [24, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_flood_through_a_terminal_is_kept_in_part(tmp_path: Path, pieces: int) -> None:
    """Beginning and end, in bounded memory and a bounded file; the target is never stalled for good."""
    command = [PYTHON, "-c", FLOOD, str(pieces)]
    with controlled(tmp_path, "--", *command) as recorder:
        assert recorder.event()["event"] == "started"
        finished = recorder.event()
        assert finished["event"] == "finished" and finished["exit"]["code"] == 0
        assert recorder.process.wait(LONG) == 0
    assert (tmp_path / "run.stepscope").stat().st_size < 12 * MIB
    with opened(tmp_path) as run:
        (cut,) = (event for event in run.events() if event.kind == "output_cut")
        assert run.meta["overhead"]["peak_rss"] < 200 * MIB
    assert "first 256 kB" in cut.text


def test_interrupts_in_a_group_of_processes(tmp_path: Path) -> None:
    """Ctrl-C goes to the command; the recorder ends after it, with its status."""
    path = script(tmp_path, """
        import pathlib, sys, time
        try:
            pathlib.Path("up").write_text("1")
            time.sleep(600)
        except KeyboardInterrupt:
            print("saved", flush=True)
            sys.exit(0)
        """)
    with recording(tmp_path, "--", PYTHON, str(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                   start_new_session=True) as process:
        wait_for(tmp_path / "up")
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=LONG)
        assert (out, process.returncode) == (b"saved\n", 0)


def test_a_recorder_started_by_a_shell_in_the_background(tmp_path: Path) -> None:
    """Standard input of the recorder may be closed, and all three streams."""
    command = own_command("record", "-o", "run.stepscope", "--", PYTHON, "-c",
                          "import pathlib; pathlib.Path('ran').write_text('1')")
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path),
                               preexec_fn=lambda: os.closerange(0, 3))
    assert process.wait(timeout=LONG) == 0
    assert (tmp_path / "ran").exists()
    until(lambda: (tmp_path / "run.stepscope").exists())
