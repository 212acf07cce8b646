"""Launchers and their ranks (S02), what is left behind (S05), runs without steps (S11): the real product."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from profiler.model import STEP_PARTIAL
from profiler.paths import own_command
from profiler.rules.verdict import diagnose
from tests.record.beside import LONG
from tests.record.running import (
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

# S02: launchers


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Two ranks; the second fails in its first life and is started anew. Flags like ours are the script's."""
    folder = tmp_path_factory.mktemp("launched")
    script(folder, """
        import os, sys
        words = [os.environ["RANK"], os.environ["RESTART"], *sys.argv[1:]]
        os.write(1, (" ".join(words) + chr(10)).encode())
        import torch
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, x in enumerate(torch.utils.data.DataLoader(torch.randn(24, 4), batch_size=2)):
            model(x).sum().backward()
            optimizer.step()
            if i == 7 and os.environ["RANK"] == "1" and os.environ["RESTART"] == "0":
                os._exit(5)
        """, "train.py")
    path = script(folder, """
        import os, pathlib, subprocess, sys
        ours, theirs = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
        print("launcher", *ours, flush=True)
        def start(rank, restart):
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "RESTART": str(restart)}
            return subprocess.Popen([sys.executable, "train.py", *theirs], env=env)
        first, second = start(0, 0), start(1, 0)
        statuses = [second.wait()]
        third = start(1, 1)
        statuses += [first.wait(), third.wait()]
        pathlib.Path("pids.json").write_text(str([first.pid, second.pid, third.pid]))
        sys.exit(statuses[0])
        """, "launcher.py")
    command = [PYTHON, str(path), "--steps", "3", "-o", "x", "--", "--rate", "7", "--", "-o", "y"]
    return folder, record(folder, "--name=ours", "--", *command, timeout=LONG)


def test_s02_no_flag_is_swallowed(launched: tuple[Path, Any]) -> None:
    folder, done = launched
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "launcher --steps 3 -o x"
    assert sorted(lines[1:]) == [f"{rank} {life} --rate 7 -- -o y" for rank, life in ("00", "10", "11")]
    assert done.returncode == 5  # the launcher's own
    with opened(folder) as run:
        assert run.meta["name"] == "ours" and run.meta["rate_hz"] == 10.0


def test_s02_each_life_of_a_rank_is_a_process_of_its_own(launched: tuple[Path, Any]) -> None:
    folder, _ = launched
    pids = json.loads((folder / "pids.json").read_text())
    with opened(folder) as run:
        ranks = {process.pid: process for process in run.processes if process.role == "rank"}
        steps = {}
        for pid, process in ranks.items():
            (flags,) = run.find("step.flags", process=process.id)
            steps[pid] = int((run.values(flags.id)[1].astype(int) & STEP_PARTIAL == 0).sum())
        target = [process for process in run.processes if process.role == "target"]
        notes = diagnose(run).to_json()
    assert sorted(ranks) == sorted(pids)
    assert [ranks[pid].rank for pid in pids] == [0, 1, 1]
    assert [ranks[pid].properties["world"] for pid in pids] == [2, 2, 2]
    assert steps[pids[0]] == steps[pids[2]] == 12
    assert steps[pids[1]] <= 8  # it was ended at once: what it had not sent is lost
    assert len(target) == 1 and target[0].rank is None
    assert {row["rank"] for row in notes.get("ranks", [])} <= {0, 1}


def test_s02_the_tree_is_charted(launched: tuple[Path, Any]) -> None:
    with opened(launched[0]) as run:
        (track,) = run.find("target.processes")
        counts = run.values(track.id)[1]
        (cpu,) = run.find("target.cpu")
    assert counts.max() >= 3  # the launcher and both ranks
    assert cpu.process is not None


# S05: what is left behind

STUBBORN = """
    import os, pathlib, signal, sys, time
    role = sys.argv[1] if len(sys.argv) > 1 else "main"
    if role != "meek":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if role == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if role == "main":
        import subprocess
        children = [subprocess.Popen([sys.executable, __file__, name]) for name in ("meek", "stubborn")]
        for name in ("meek", "stubborn"):
            while not pathlib.Path(name).exists():
                time.sleep(0.01)
        pathlib.Path("pids.new").write_text(" ".join(str(c.pid) for c in children))
        pathlib.Path("pids.new").rename("pids")
    else:
        pathlib.Path(role).touch()
    time.sleep(600)
    """


@pytest.mark.parametrize("do", ["stop", "kill"])
def test_s05_a_stop_leaves_nothing_of_the_tree(tmp_path: Path, do: str) -> None:
    path = script(tmp_path, STUBBORN)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        root = recorder.event()["pid"]
        pids = [int(pid) for pid in wait_for(tmp_path / "pids").split()]
        assert all(running(pid) for pid in [root, *pids])
        recorder.send(do)
        recorder.wait()
    assert not [pid for pid in [root, *pids] if running(pid)]
    with opened(tmp_path) as run:
        assert run.meta["exit"]["reason"] == {"stop": "stopped", "kill": "killed"}[do]
        assert not [event for event in run.events() if event.kind == "left_running"]


def test_s05_a_killed_main_process_leaves_its_workers_to_the_stop(tmp_path: Path) -> None:
    """The parent is killed by somebody, its children live on: they are listed, and go on (design)."""
    path = script(tmp_path, STUBBORN)
    with recording(tmp_path, "--", PYTHON, str(path), stderr=subprocess.DEVNULL) as process:
        pids = sorted(int(pid) for pid in wait_for(tmp_path / "pids").split())
        try:
            (root,) = (child for child in psutil.Process(process.pid).children()
                       if str(path) in child.cmdline())
            _sees(tmp_path, 3)
            root.kill()
            assert process.wait(timeout=60) == 128 + signal.SIGKILL
            assert all(running(pid) for pid in pids)
        finally:
            for pid in pids:
                end(pid)
    with opened(tmp_path) as run:
        (left,) = (event for event in run.events() if event.kind == "left_running")
    assert left.data["pids"] == pids and left.severity == "info"
    assert f"{pids[0]}, {pids[1]}" in left.text


def _sees(folder: Path, count: int) -> None:
    """Wait until the recorder has counted so many processes of the target."""
    def counted() -> bool:
        if not (folder / "run.stepscope").exists():
            return False
        with opened(folder) as run:
            return any((run.values(track.id)[1] >= count).any() for track in run.find("target.processes"))

    until(counted, 60)


def test_s05_what_cannot_be_ended_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in the midst of a call that nothing interrupts."""
    from profiler.record.clock import Clock
    from profiler.record.life import Life
    from profiler.record.options import Options
    from tests.fakes.sink import ListSink

    sink = ListSink()
    options = Options(tmp_path / "x", (PYTHON, "-c", "import time; time.sleep(600)"))
    life = Life(options, sink, Clock(), tmp_path)
    life.begin()
    assert life.target is not None
    try:
        monkeypatch.setattr(psutil.Process, "send_signal", lambda self, number: None)
        monkeypatch.setattr("profiler.record.stop.STAGES", ())
        monkeypatch.setattr("profiler.record.stop.KILL_STAGES", ((signal.SIGKILL, 0.0),))
        life.stop("stopped", kill=True)
        until(lambda: life.check() or life._all_ended, 30)
    finally:
        end(life.target.pid)
        life.target._popen.wait()
    (left,) = (event for event in sink.events if event.kind == "left_running")
    assert left.severity == "warning" and left.data["pids"] == [life.target.pid]
    life.close()


def test_s05_a_healthy_end_leaves_nothing_to_tell(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'], check=True)"
    assert record(tmp_path, "--", PYTHON, "-c", code).returncode == 0
    with opened(tmp_path) as run:
        assert not [event for event in run.events() if event.kind == "left_running"]


def test_s05_a_users_command_goes_on_without_its_window(tmp_path: Path) -> None:
    """Design: a user's command goes on when the app dies; workloads end (see test_processes)."""
    path = script(tmp_path, """
        import pathlib, time
        while not pathlib.Path("go").exists():
            time.sleep(0.02)
        pathlib.Path("done").write_text("yes")
        """)
    with controlled(tmp_path, "--", PYTHON, str(path)) as recorder:
        pid = recorder.event()["pid"]
        recorder.close()
        assert recorder.wait() == 0
        assert running(pid)
        (tmp_path / "go").touch()
        assert wait_for(tmp_path / "done") == "yes"
    with opened(tmp_path) as run:
        assert run.meta["exit"]["reason"] == "detached" and run.state == "partial"


# S11: next to nothing


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nothing")
    done = record(folder, "--", PYTHON, "-c", "pass")
    assert (done.returncode, done.stdout) == (0, b"")
    return folder


def cli(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(own_command(*args), cwd=folder, env=environment(folder), capture_output=True,
                          text=True, timeout=LONG, check=False)


def test_s11_a_script_that_does_nothing_has_an_honest_diagnosis(nothing: Path) -> None:
    told = json.loads(cli(nothing, "diagnose", "--json", "run.stepscope").stdout)
    assert told["verdict"] == "unknown" and told["reason"] and told["step_ms"] is None
    assert told["throughput"] is None and told["stages_ms"] is None and not told["findings"]
    assert told["steps"]["count"] == 0


def test_s11_its_report_and_its_figures_hold_no_number_that_nobody_measured(nothing: Path) -> None:
    done = cli(nothing, "report", "run.stepscope", "-o", "r.html")
    assert done.returncode == 0, done.stderr
    page = (nothing / "r.html").read_text(encoding="utf-8")
    text = re.sub("<(style|script).*?</", "", page, flags=re.DOTALL)
    words = set(re.split(r"[^a-z0-9%]+", re.sub("<[^>]*>", " ", text).lower()))
    assert not words & {"nan", "inf", "p5", "p95", "percentile"}
    told = cli(nothing, "diagnose", "--json", "run.stepscope").stdout
    json.loads(told, parse_constant=lambda name: pytest.fail(name))


def test_s11_compare_refuses(nothing: Path) -> None:
    (nothing / "other.stepscope").write_bytes((nothing / "run.stepscope").read_bytes())
    done = cli(nothing, "compare", "run.stepscope", "other.stepscope", "--json")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("stepscope: run.stepscope holds no trace"), done.stderr


@pytest.mark.parametrize("steps", [1, 2])
def test_s11_one_or_two_steps_give_no_percentiles(tmp_path: Path, steps: int) -> None:
    from tests.runs import make_run

    for name in "ab":
        make_run(tmp_path / f"{name}.stepscope", steps=steps)
    told = json.loads(cli(tmp_path, "diagnose", "--json", "a.stepscope").stdout)
    assert told["verdict"] == "unknown" and not told["findings"]
    step = told["step_ms"]
    assert step is None or (step["p5"] is None and step["p95"] is None)
    assert cli(tmp_path, "compare", "a.stepscope", "b.stepscope").returncode == 2
