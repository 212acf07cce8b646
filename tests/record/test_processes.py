"""Which processes are ended, and which are told to lack the probe."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from profiler.paths import HOME, PROBE
from profiler.record import absent
from profiler.record.absent import AbsentProbes, cause
from profiler.record.clock import Clock
from profiler.record.stop import KILL_STAGES, StagedStop, carriers
from tests.record.running import (
    LEAVES,
    PYTHON,
    environment,
    opened,
    recording,
    running,
    script,
    wait_for,
)
from tests.waiting import until

SLEEP = "import time; print(1, flush=True); time.sleep(60)"


def start(*args: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([PYTHON, *args], stdout=subprocess.PIPE, env=env)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_carriers_are_told_by_their_environment() -> None:
    process = start("-c", SLEEP, env={"STEPSCOPE_SPOOL": "/some/spool"})
    other = start("-c", SLEEP, env={"STEPSCOPE_SPOOL": "/some/spool2"})
    try:
        assert [found.pid for found in carriers("STEPSCOPE_SPOOL", "/some/spool")] == [process.pid]
    finally:
        end(process)
        end(other)


def test_a_stop_does_not_touch_a_pid_given_to_another_process() -> None:
    process = start("-c", SLEEP)
    try:
        other = psutil.Process(process.pid)
        other._create_time = 1.0  # what psutil compares in is_running
        other._ident = (process.pid, 1.0)
        stop = StagedStop(lambda: [other], KILL_STAGES)
        assert stop.advance()
        assert running(process.pid)
    finally:
        end(process)


def test_what_a_workload_leaves_behind_is_ended(tmp_path: Path) -> None:
    path = script(tmp_path, LEAVES.replace("CLOSES", "False"))
    recorder = f"""if 1:
        import sys; sys.path.insert(0, {str(HOME)!r})
        from pathlib import Path
        from profiler.record.options import Options
        from profiler.record.recorder import record
        record(Options(Path("run.stepscope"), (sys.executable, {str(path)!r}), workload="some"), print)
        """
    subprocess.run([PYTHON, "-c", recorder], cwd=tmp_path, env=environment(tmp_path), check=True, timeout=60)
    assert not running(int(wait_for(tmp_path / "pid")))


@pytest.mark.parametrize(("options", "env", "word"), [
    (("-I",), {}, "python -I"),
    (("-uE",), {}, "python -E"),
    ((), {"STEPSCOPE_SPOOL": "/elsewhere"}, "without our environment"),
    ((), {"PYTHONPATH": "/other"}, "PYTHONPATH was replaced"),
    (("-X", "utf8"), {}, "did not start"),
])
def test_cause_of_an_absent_probe(tmp_path: Path, options: tuple[str, ...], env: dict[str, str],
                                  word: str) -> None:
    path = script(tmp_path, SLEEP)
    base = {"STEPSCOPE_SPOOL": str(tmp_path), "PYTHONPATH": str(PROBE), "STEPSCOPE_LIFELINE": ""}
    process = start(*options, str(path), env={**base, **env})
    try:
        assert word in cause(psutil.Process(process.pid), tmp_path)
    finally:
        end(process)


def test_absent_probes_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = [start("-I", "-c", SLEEP), start("-I", "-c", SLEEP)]
    events: list[dict[str, Any]] = []

    class Sink:
        def event(self, t_ns: int, kind: str, severity: str, text: str, data: Any) -> None:
            events.append({"kind": kind, "text": text, **data})

    try:
        monkeypatch.setattr(absent, "_has_torch", lambda pid: True)
        (tmp_path / f"{processes[0].pid}.0.spool").write_text(json.dumps(["hello", {}]) + "\n")
        probes = AbsentProbes(lambda: [psutil.Process(p.pid) for p in processes], tmp_path)
        monkeypatch.setattr(absent, "GRACE_S", 0.0)
        probes.look()
        probes.tick(Sink(), Clock())  # type: ignore[arg-type]
        probes.look()
        probes.tick(Sink(), Clock())  # type: ignore[arg-type]
    finally:
        for process in processes:
            end(process)
    assert [event["pid"] for event in events] == [processes[1].pid]
    assert events[0]["kind"] == "probe_absent"
    assert "import stepscope; stepscope.attach()" in events[0]["text"]


def test_a_probe_that_waits_for_torch_is_not_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch takes longer than the usual patience on a busy machine or a slow disk."""
    process = start("-c", SLEEP)
    events: list[str] = []

    class Sink:
        def event(self, t_ns: int, kind: str, severity: str, text: str, data: Any) -> None:
            events.append(kind)

    try:
        monkeypatch.setattr(absent, "_has_torch", lambda pid: True)
        monkeypatch.setattr(absent, "GRACE_S", 0.0)
        (tmp_path / f"{process.pid}.entered").touch()
        probes = AbsentProbes(lambda: [psutil.Process(process.pid)], tmp_path)
        probes.look()
        probes.tick(Sink(), Clock())  # type: ignore[arg-type]
        probes.end(Sink(), Clock())  # type: ignore[arg-type]
        assert not events
        monkeypatch.setattr(absent, "ENTERED_S", 0.0)
        probes.tick(Sink(), Clock())  # type: ignore[arg-type]
    finally:
        end(process)
    assert events == ["probe_absent"]


def test_torch_without_a_probe_is_reported(tmp_path: Path) -> None:
    code = "import torch, pathlib, time; pathlib.Path('up').write_text('1'); time.sleep(60)"
    with recording(tmp_path, "--", PYTHON, "-I", "-c", code, stderr=subprocess.DEVNULL) as process:
        wait_for(tmp_path / "up")
        until(lambda: _kinds(tmp_path).count("probe_absent"), 30)
        process.terminate()
        process.wait(timeout=30)
    assert _kinds(tmp_path).count("probe_absent") == 1


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_workload_ends_with_its_killed_recorder(tmp_path: Path, workers: int) -> None:
    """Within two seconds; also without workers, whose death alone would end the loop."""
    options = ["--workload", "input_starved", "--set", "size=smallest", "--set", "steps=100000",
               "--set", f"workers={workers}"]
    with recording(tmp_path, *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: _has_steps(tmp_path), 60)
        tree = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        until(lambda: not any(running(child.pid) for child in tree), 2)
    assert tree
    with opened(tmp_path) as run:
        assert run.state == "partial"
        assert run.meta["workload"]["name"] == "input_starved"
        assert run.meta["workload"]["settings"]["workers"] == workers


def _has_steps(folder: Path) -> bool:
    if not (folder / "run.stepscope").exists():
        return False
    with opened(folder) as run:
        return bool(run.find("step.wall"))


def _kinds(folder: Path) -> list[str]:
    with opened(folder) as run:
        return [event.kind for event in run.events()]
