"""A recorded command behaves as without us."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from profiler.paths import HOME, own_command
from tests.record.running import PYTHON, environment, opened, record, recording, running, script, wait_for
from tests.waiting import until


@pytest.mark.parametrize(("code", "state"), [(0, "finished"), (3, "partial")])
def test_exit_status_is_passed_on(tmp_path: Path, code: int, state: str) -> None:
    done = record(tmp_path, "--", PYTHON, "-c", f"raise SystemExit({code})")
    assert done.returncode == code
    assert done.stdout == b""
    assert done.stderr.decode().splitlines() == [f"stepscope: run file: {tmp_path / 'run.stepscope'}"]
    with opened(tmp_path) as run:
        assert run.state == state
        assert run.meta["exit"] == {"code": code, "signal": None, "reason": "ended"}
        assert run.meta["command"] == [PYTHON, "-c", f"raise SystemExit({code})"]
        assert [process.role for process in run.processes] == ["target"]
        assert run.meta["overhead"]["cpu_s"] > 0
        recorder = {track.metric for track in run.tracks if track.metric.startswith("recorder.")}
        assert recorder == {"recorder.cpu", "recorder.lateness", "recorder.missed"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.stepscope", "tmp"]
    assert not list((tmp_path / "tmp").iterdir())


def test_death_by_a_signal_is_told_by_name(tmp_path: Path) -> None:
    done = record(tmp_path, "--", PYTHON, "-c", "import os; os.kill(os.getpid(), 11)")
    assert done.returncode == 139
    assert b"the command was ended by SIGSEGV" in done.stderr
    with opened(tmp_path) as run:
        assert run.meta["exit"] == {"code": 139, "signal": "SIGSEGV", "reason": "ended"}
        assert run.state == "partial"


def test_arguments_paths_and_modules(tmp_path: Path) -> None:
    script(tmp_path, """
        import sys, os
        print(sys.argv[1:], open('data/rel.txt').read(), __name__, sys.path[0] == os.getcwd())
        """, "pkg/train.py")
    (tmp_path / "pkg" / "__init__.py").touch()
    script(tmp_path, "words", "data/rel.txt")
    command = [PYTHON, "-m", "pkg.train", "--data", "x", "--", "-o", "y", "--rate"]
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    done = record(tmp_path, "--name=n", "--", *command)
    assert done.stdout == plain.stdout == b"['--data', 'x', '--', '-o', 'y', '--rate'] words __main__ True\n"


def test_output_is_unchanged_byte_for_byte(tmp_path: Path) -> None:
    path = script(tmp_path, r"""
        import os, sys
        for i in range(3):
            os.write(1, b"\r%d %%" % i)
            os.write(2, b"\rerror %d\xff\x00" % i)
        os.write(1, b"\r\n\r\ntail without end")
        sys.stdout.write(sys.stdin.readline() + str(sys.stdin.isatty()))
        """)
    plain = subprocess.run([PYTHON, path], input=b"typed\n", capture_output=True, check=True)
    done = record(tmp_path, "--", PYTHON, str(path), input=b"typed\n")
    assert done.stdout == plain.stdout
    assert done.stderr.startswith(plain.stderr)


def test_own_modules_and_variables_reach_it(tmp_path: Path) -> None:
    script(tmp_path, "WORD = 'mine'", "lib/profiler.py")
    code = """if 1:
        import os, profiler
        print(profiler.WORD, os.environ['OTHER'], os.environ['PYTHONPATH'].split(os.pathsep)[1:])
        """
    env = environment(tmp_path, PYTHONPATH=str(tmp_path / "lib"), OTHER="1")
    done = record(tmp_path, "--", PYTHON, "-c", code, env=env)
    assert done.stdout.decode() == f"mine 1 {[str(tmp_path / 'lib')]}\n"


def test_a_closed_pipe_ends_it_as_without_us(tmp_path: Path) -> None:
    with recording(tmp_path, "--", "yes", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE


def test_descriptors_of_the_shell_reach_it_and_ours_do_not(tmp_path: Path) -> None:
    code = "import os; print(os.read(7, 9), *sorted(os.listdir('/proc/self/fd')), flush=True)"
    words = own_command("record", "-o", "run.stepscope", "--", PYTHON, "-c", code)
    shell = f"exec 7<<<'from here'; {shlex.join(words)}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=environment(tmp_path), capture_output=True,
                          timeout=30, check=True)
    assert done.stdout == b"b'from here' 0 1 2 3 7\n"  # 3: the listing itself


def test_status_is_told_where_children_were_ignored(tmp_path: Path) -> None:
    done = record(tmp_path, "--", PYTHON, "-c", "raise SystemExit(6)",
                  preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 6


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    code = "import signal; print(signal.getsignal(signal.SIGHUP).name, signal.getsignal(signal.SIGTERM).name)"
    done = record(tmp_path, "--", PYTHON, "-c", code,
                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert done.stdout == b"SIG_IGN SIG_DFL\n"


def test_terminal_and_interrupt_key_are_the_targets(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import os, sys, time
        foreground = os.tcgetpgrp(0) == os.getpgrp()
        terminals = [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)]
        print(*terminals, foreground, input("name? "), flush=True)
        try:
            print("sleeping", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            sys.exit(7)
        """)
    master, slave = pty.openpty()
    with recording(tmp_path, "--", PYTHON, str(path), stdin=slave, stdout=slave, stderr=slave,
                   preexec_fn=lambda: _own_terminal(slave)) as process:
        os.close(slave)
        screen = _read_until(master, b"name? ")
        os.write(master, b"ada\n")
        screen += _read_until(master, b"sleeping")
        os.write(master, b"\x03")
        screen += _read_until(master, b"run file")
        assert process.wait(timeout=30) == 7
    os.close(master)
    assert b"True True True True ada" in screen
    assert b"interrupted" in screen
    assert b"Traceback" not in screen


def _own_terminal(slave: int) -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def _read_until(fd: int, word: bytes) -> bytes:
    seen = b""
    while word not in seen:
        seen += os.read(fd, 4096)
    return seen


def test_killed_recorder_leaves_the_command_unharmed(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import os, pathlib, sys, time
        pathlib.Path("pid").write_text(str(os.getpid()))
        while not pathlib.Path("go").exists():
            time.sleep(0.02)
        print("x" * 100000, flush=True)
        pathlib.Path("sentinel").write_text("done")
        """)
    with (tmp_path / "out").open("wb") as out, \
            recording(tmp_path, "--", PYTHON, str(path), stdout=out, stderr=out) as process:
        wait_for(tmp_path / "pid")
        until(lambda: _samples(tmp_path) > 0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        (tmp_path / "go").touch()
        assert wait_for(tmp_path / "sentinel") == "done"
    with opened(tmp_path) as run:
        assert run.state == "partial"
        assert run.find("host.cpu")


def _samples(folder: Path) -> int:
    if not (folder / "run.stepscope").exists():
        return 0
    with opened(folder) as run:
        return sum(len(run.values(track.id)[0]) for track in run.find("host.cpu"))


@pytest.mark.parametrize("stubborn", [False, True])
def test_terminated_recorder_ends_the_tree_in_stages(tmp_path: Path, stubborn: bool) -> None:
    path = script(tmp_path, f"""
        import os, pathlib, signal, subprocess, sys, time
        if {stubborn}:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if len(sys.argv) == 1:
            child = subprocess.Popen([sys.executable, __file__, "child"])
            pathlib.Path("pids").write_text(f"{{os.getpid()}} {{child.pid}}")
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            sys.exit(5)
        """)
    with recording(tmp_path, "--", PYTHON, str(path), stderr=subprocess.PIPE) as process:
        pids = [int(pid) for pid in wait_for(tmp_path / "pids").split()]
        process.terminate()
        assert process.wait(timeout=30) == (137 if stubborn else 5)
        assert not any(running(pid) for pid in pids)
    with opened(tmp_path) as run:
        assert run.meta["exit"]["reason"] == "terminated"


def test_lifeline_closes_with_the_recorder(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import os, pathlib
        pathlib.Path("pid").write_text(str(os.getpid()))
        os.read(int(os.environ["STEPSCOPE_LIFELINE"]), 1)
        pathlib.Path("sentinel").write_text("recorder gone")
        """)
    # -I: without the probe, which would end the process first
    with recording(tmp_path, "--lifeline", "--", PYTHON, "-I", str(path),
                   stderr=subprocess.DEVNULL) as process:
        wait_for(tmp_path / "pid")
        assert not (tmp_path / "sentinel").exists()
        process.kill()
        assert wait_for(tmp_path / "sentinel") == "recorder gone"


def test_what_a_bound_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """An experiment starts it many times: nothing may heap up. Without the lifeline it is the user's."""
    path = script(tmp_path, """
        import pathlib, subprocess, sys
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pathlib.Path("pid").write_text(str(left.pid))
        """)
    record(tmp_path, "--lifeline", "--", PYTHON, str(path))
    assert not running(int((tmp_path / "pid").read_text()))
    record(tmp_path, "--force", "--", PYTHON, str(path))
    pid = int((tmp_path / "pid").read_text())
    assert running(pid)
    os.kill(pid, signal.SIGKILL)


def test_duration_and_json(tmp_path: Path) -> None:
    import json

    code = "import time; print('mine', flush=True); time.sleep(60)"
    done = record(tmp_path, "--duration", "0.5", "--json", "--", PYTHON, "-c", code)
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["exit"] == {"code": 130, "signal": "SIGINT", "reason": "duration"}
    assert told["run"] == str(tmp_path / "run.stepscope")
    assert b"mine" in done.stderr


def test_a_stand_in_driver_library_stays_out_of_the_target(tmp_path: Path) -> None:
    env = environment(tmp_path, LD_LIBRARY_PATH="/fake:/real", STEPSCOPE_TEST_LIBRARY_DIR="/fake")
    code = "import os; print(os.environ['LD_LIBRARY_PATH'])"
    assert record(tmp_path, "--", PYTHON, "-c", code, env=env).stdout == b"/real\n"


SABOTAGED = """
import sys
from profiler.cli import main
from profiler.record import recorder
def broken(*args):
    raise ValueError("sabotaged")
places = {"loop": (recorder.Recorder, "_each_second"), "begin": (recorder.SourceThread, "start")}
setattr(*places[sys.argv[1]], broken)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("place", ["loop", "begin"])
@pytest.mark.parametrize("mode", [(), ("--control",)])
def test_a_failure_of_the_recorder_is_not_the_targets(tmp_path: Path, place: str,
                                                      mode: tuple[str, ...]) -> None:
    command = ["sh", "-c", "sleep 0.5; echo finished > out; exit 6"]
    argv = ["record", "-o", str(tmp_path / "run.stepscope"), *mode, "--", *command]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([PYTHON, "-c", SABOTAGED, place, *argv], cwd=tmp_path,
                          env=environment(tmp_path, PYTHONPATH=str(HOME)), **pipes) as process:
        assert process.stderr is not None
        told = process.stderr.read().decode()
        assert process.wait(30) == 6, told
    assert (tmp_path / "out").read_text() == "finished\n"
    assert "the command goes on: ValueError: sabotaged" in told and "Traceback" not in told
    with opened(tmp_path) as run:
        assert run.state == "partial"
    assert list((tmp_path / "tmp").iterdir()) == []
