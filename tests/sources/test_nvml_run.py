"""From the driver to the run file: what was planned is what is read back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from profiler.run.reader import Run
from tests.fakes import nvml
from tests.sources.planned import PLAN, PLANNED
from tests.waiting import until

ENTRY = Path(__file__).resolve().parents[2] / "stepscope.py"


def monitor(path: Path, env: Mapping[str, str], complete: Callable[[Run], bool]) -> Run:
    """The run of a monitor that is ended, as a user does, once the growing file is complete."""
    command = [
        sys.executable,
        "-P",
        str(ENTRY),
        "monitor",
        "--control",
        "--pid",
        str(os.getpid()),
        "-o",
        str(path),
    ]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            assert '"started"' in process.stdout.readline()
            live = Run.open(path)
            try:
                until(lambda: live.refresh() is not None and complete(live), timeout=30)
            finally:
                live.close()
            process.stdin.write('{"do": "stop"}\n')
            process.stdin.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    return Run.open(path)


def values(run: Run, metric: str, gpu: int) -> set[float]:
    device = next(d.id for d in run.devices if d.index == gpu)
    return {float(v) for t in run.find(metric, device=device) for v in run.values(t.id)[1]}


def test_run_file_carries_exactly_the_planned_values(nvml_library: Path, tmp_path: Path) -> None:
    plan = nvml.Plan(tmp_path / "plan", *PLAN, "procs 1", f"proc_pid {os.getpid()}", "proc_mem 4096")

    def complete(run: Run) -> bool:
        return bool(run.find("gpu.process_mem")) and len(run.find("gpu.throttle")) == 2

    run = monitor(tmp_path / "run.stepscope", nvml.environment(nvml_library, plan), complete)
    try:
        assert run.meta["gpu"]["state"] == "ok" and run.meta["gpu"]["driver"] == "580.00.00"
        assert [d.name for d in run.devices] == ["Stand-in GPU"] * 2
        for metric, value in PLANNED.items():
            assert values(run, metric, 0) == {value}, metric
        assert values(run, "gpu.util", 1) == {0.91} and values(run, "gpu.power", 1) == {654.321}
        assert values(run, "gpu.pcie_rx", 0) == {4_321_000} and values(run, "gpu.pcie_tx", 1) == {1_234_000}
        assert values(run, "gpu.other_processes", 0) == {0} and values(run, "gpu.process_mem", 0) == {4096}
    finally:
        run.close()


def test_run_without_the_library_says_why_and_has_all_the_rest(tmp_path: Path) -> None:
    (tmp_path / nvml.SONAME).write_text("no library")  # found first, and unusable
    run = monitor(
        tmp_path / "run.stepscope",
        {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        lambda run: bool(run.find("host.cpu")) and bool(run.find("target.cpu")),
    )
    try:
        gpu = run.meta["gpu"]
        assert (gpu["state"], gpu["cause"]) == ("absent", "no_library") and gpu["hint"]
        assert run.devices == [] and not [t for t in run.tracks if t.metric.startswith("gpu.")]
        (event,) = [e for e in run.events() if e.kind == "source_off"]
        assert gpu["reason"] in event.text
    finally:
        run.close()
