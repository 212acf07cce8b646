"""A recorder that a window controls, with the target on a pseudo-terminal of its own."""

from __future__ import annotations

import os
import resource
import signal
import threading
from pathlib import Path

import psutil

from profiler.record.control import Control
from tests.record.running import PYTHON, controlled, end, opened, running, script, wait_for
from tests.waiting import until


def output(folder: Path) -> bytes:
    with opened(folder) as run:
        return b"".join(data for _, _, data in run.output())


def test_output_input_mark_and_end(tmp_path: Path) -> None:
    path = script(tmp_path, r"""
        import os, sys
        print(sys.stdin.isatty(), sys.stdout.isatty(), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
        os.write(1, b"\r1 %\r2 %\r\n")
        print("got " + input(), flush=True)
        sys.exit(4)
        """)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        started = recorder.event()
        assert (started["event"], started["run"]) == ("started", str(tmp_path / "run.stepscope"))
        until(lambda: b"2 %" in output(tmp_path))
        recorder.send("mark", text="here")
        recorder.send("nonsense")
        recorder.send("input", text="word\n")
        assert recorder.event() == {"event": "finished", "run": started["run"], "state": "partial",
                                    "exit": {"code": 4, "signal": None, "reason": "ended"}}
        assert recorder.wait() == 4
    text = output(tmp_path)
    assert text.startswith(b"True True True\n\r1 %\r2 %\r\n")
    assert text.endswith(b"got word\n")
    with opened(tmp_path) as run:
        assert [event.text for event in run.events() if event.kind == "mark"] == ["here"]


def test_stop_is_acknowledged_and_ends_the_tree(tmp_path: Path) -> None:
    code = "import time; print('up', flush=True); time.sleep(60)"
    with controlled(tmp_path, "--", PYTHON, "-c", code) as recorder:
        pid = recorder.event()["pid"]
        until(lambda: b"up" in output(tmp_path))
        recorder.send("stop")
        assert recorder.event() == {"event": "stopping"}
        finished = recorder.event()
        assert finished["state"] == "finished"
        assert finished["exit"] == {"code": 130, "signal": "SIGINT", "reason": "stopped"}
        assert recorder.wait() == 130
        assert not running(pid)


def test_what_keeps_it_from_beginning_is_an_event(tmp_path: Path) -> None:
    with controlled(tmp_path, "--", "no-such-program") as recorder:
        told = recorder.event()
        assert told["event"] == "error"
        assert "no-such-program" in told["message"]
        assert recorder.wait() == 2


def test_trace_asks_the_probe(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import os, pathlib, time
        asked = pathlib.Path(os.environ["STEPSCOPE_SPOOL"], "trace_now")
        print("up", flush=True)
        while not asked.exists():
            time.sleep(0.01)
        print("steps", asked.read_text(), flush=True)
        """)
    with controlled(tmp_path, "--", PYTHON, "-I", str(path)) as recorder:
        recorder.event()
        until(lambda: b"up" in output(tmp_path))
        recorder.send("trace", steps=5)
        assert recorder.event()["exit"]["code"] == 0
    assert b"steps 5" in output(tmp_path)


def test_kill_does_not_ask(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(2, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    with controlled(tmp_path, "--", PYTHON, "-c", code) as recorder:
        recorder.event()
        until(lambda: b"up" in output(tmp_path))
        recorder.send("kill")
        assert recorder.event() == {"event": "stopping"}
        assert recorder.event()["exit"]["signal"] == "SIGKILL"
        assert recorder.wait() == 137


CHATTY = """
    import os, pathlib, signal, sys, time
    signal.signal(signal.SIGHUP, lambda *_: pathlib.Path("hangup").touch())
    pathlib.Path("pid").write_text(str(os.getpid()))
    while not pathlib.Path("go").exists():
        print("waiting", flush=True)
        time.sleep(0.05)
    for _ in range(200):  # far more than a pipe or a terminal holds
        os.write(1, b"x" * 50000)
    pathlib.Path("sentinel").write_text("done")
    """


def test_end_of_control_detaches_from_a_users_command(tmp_path: Path) -> None:
    path = script(tmp_path, CHATTY)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        recorder.event()
        wait_for(tmp_path / "pid")
        recorder.close()
        finished = recorder.event()
        assert (finished["state"], finished["exit"]["reason"]) == ("partial", "detached")
        assert recorder.wait() == 0
        (tmp_path / "go").touch()
        assert wait_for(tmp_path / "sentinel") == "done"
    assert not (tmp_path / "hangup").exists()
    with opened(tmp_path) as run:
        assert run.state == "partial"


def test_killed_recorder_leaves_a_command_on_the_pseudo_terminal_unharmed(tmp_path: Path) -> None:
    path = script(tmp_path, CHATTY)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        recorder.event()
        pid = int(wait_for(tmp_path / "pid"))
        relay = psutil.Process(pid).parent()
        assert relay is not None
        recorder.process.send_signal(signal.SIGKILL)
        recorder.process.wait()
        (tmp_path / "go").touch()
        assert wait_for(tmp_path / "sentinel") == "done"
        until(lambda: not running(relay.pid), what="the relay ends after its command")
    assert not (tmp_path / "hangup").exists()


def test_end_of_control_ends_a_command_with_a_lifeline(tmp_path: Path) -> None:
    code = "import time; print('up', flush=True); time.sleep(60)"
    with controlled(tmp_path, "--lifeline", "--", PYTHON, "-c", code) as recorder:
        pid = recorder.event()["pid"]
        until(lambda: b"up" in output(tmp_path))
        recorder.close()
        assert recorder.event()["exit"]["reason"] == "stopped"
        recorder.wait()
        assert not running(pid)


def test_what_a_command_leaves_behind_is_left_alone(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import pathlib, subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path("child").write_text(str(child.pid))
        """)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        recorder.event()
        assert recorder.event()["exit"]["code"] == 0
        assert recorder.wait() == 0
        child = int(wait_for(tmp_path / "child"))
        assert running(child)
        end(child)


def test_full_disk_is_told_and_the_command_goes_on(tmp_path: Path) -> None:
    path = script(tmp_path, """
        import os, pathlib, time
        while not pathlib.Path("go").exists():
            os.write(1, b"y" * 10000)
            time.sleep(0.01)
        pathlib.Path("sentinel").write_text("done")
        """)
    limit = 300_000

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with controlled(tmp_path, "--", PYTHON, str(path), preexec_fn=small_files) as recorder:
        recorder.event()
        told = recorder.event()
        assert told["event"] == "error"
        assert "run.stepscope" in told["message"]
        (tmp_path / "go").touch()
        assert recorder.event()["exit"]["code"] == 0
        assert recorder.wait() == 0
        assert recorder.process.stderr is not None
        lines = recorder.process.stderr.read().decode().splitlines()
    assert (tmp_path / "sentinel").exists()
    assert len(lines) == 2
    assert "the command goes on" in lines[0]
    assert "incomplete" in lines[1]
    with opened(tmp_path) as run:
        assert run.output()


def test_no_line_stops_the_control_channel() -> None:
    """Nesting without end, lines without end, text that is no text: told, and the next command works."""
    read, write = os.pipe()
    control = Control(lambda: None, stdin=read, stdout=os.open(os.devnull, os.O_WRONLY))
    thread = threading.Thread(target=control._read)
    thread.start()
    for line in (b"[" * 100_000, b"\xff\xfe", b"{}", b"9" * 5000, b"x" * (3 << 20), b'{"do": "mark"}'):
        with os.fdopen(os.dup(write), "wb") as file:
            file.write(line + b"\n")
    os.close(write)
    thread.join(30)
    assert control.take() == {"do": "mark"}
    assert control.take() == {"do": "eof"}
    os.close(read)


def test_text_that_cannot_be_typed(tmp_path: Path) -> None:
    path = script(tmp_path, "print('got ' + input(), flush=True)")
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        recorder.event()
        recorder.send("mark", text="\ud800")
        recorder.send("input", text="a\ud800b\n")
        assert recorder.event()["exit"]["code"] == 0
    assert b"got a?b" in output(tmp_path)
