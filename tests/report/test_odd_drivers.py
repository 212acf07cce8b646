"""From a driver that tells little or nonsense to what a user reads: the run file, its report, its diagnosis.

The names of the tests are those of failure cases known from the field.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.live import charts, side
from app.live.state import Live, Where
from app.widgets.chart_data import CurveData, Folded
from profiler.report.html import write
from profiler.report.page import page
from profiler.run.reader import Run
from tests.fakes import nvml
from tests.sources.test_nvml_run import ENTRY, monitor

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler to build the stand-in with")
FOREIGN = 2**22 + 5  # above the highest pid of Linux


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """WSL in a container: a name of wrong bytes, no utilization, no memory by process, one pid of nobody."""
    folder = tmp_path_factory.mktemp("odd")
    plan = nvml.Plan(
        folder / "plan", "gpus 1", r"name GB\xf8\x84bad <b>", "gpm 0",
        "ret nvmlDeviceGetUtilizationRates 999",
        "procs 2", f"proc_pid {FOREIGN}", "proc_mem 18446744073709551615",
        "proc_use 40", "proc_use_count 1", f"proc_use_pid {FOREIGN}",
        "ret nvmlDeviceGetMemoryInfo 3", "ret nvmlDeviceGetMemoryInfo_v2 3")
    path = folder / "run.stepscope"

    def complete(run: Run) -> bool:
        return any(len(run.values(track.id)[1]) > 1 for track in run.find("gpu.process_util"))

    monitor(path, nvml.environment(nvml.build(folder / "library"), plan), complete).close()
    return path


@pytest.fixture
def run(recorded: Path) -> Any:
    with Run.open(recorded) as run:
        yield run


def test_n07_a_name_of_wrong_bytes_goes_through_to_the_page(run: Run, tmp_path: Path) -> None:
    (device,) = run.devices
    assert device.name.startswith("GB") and "bad" in device.name
    html = tmp_path / "report.html"
    write(run, html)
    text = html.read_text("utf-8")
    assert "bad &lt;b&gt;" in text and "bad <b>" not in text


def test_n15_a_field_that_answers_unknown_error_is_missing_and_the_rest_is_there(run: Run) -> None:
    told = page(run)
    assert any("utilization is not read: the driver answers 'unknown error'" in t for t in told["missing"])
    titles = [chart["title"] for chart in told["charts"]]
    assert "GPU power" in titles and "GPU utilization" not in titles
    rows = {row.key: row.data for row in charts.query(run, Live(), Where(0.0, 60.0, 400)).rows}
    assert isinstance(rows["activity"], Folded) and "unknown error" in rows["activity"].reason
    assert isinstance(rows["power"], CurveData)
    assert any("tilization is not read" in row.text for row in side.query(run, Live()).events)


def test_n15_n16_processes_without_memory_are_told_by_what_they_do_and_as_of_elsewhere(run: Run) -> None:
    (busy, first), (idle, second) = dict(page(run)["settings"])["Processes on GPUs"]  # the busier one first
    assert (busy, idle) == (f"GPU 0, pid {FOREIGN}", f"GPU 0, pid {FOREIGN + 1}")
    assert second == "outside this namespace, 0\N{NO-BREAK SPACE}% of the time"
    assert first.startswith("outside this namespace, ") and first != second and "GiB" not in first
    assert not run.find("gpu.process_mem")


def test_n02_unified_memory_is_the_hosts_in_report_and_live(run: Run) -> None:
    told = page(run)
    titles = [chart["title"] for chart in told["charts"]]
    assert "Host memory, shared with GPU" in titles and "GPU memory" not in titles
    assert "memory of the host" in dict(dict(told["settings"])["Machine"])["GPU 0"]
    rows = {row.key: row for row in charts.query(run, Live(), Where(0.0, 60.0, 400)).rows}
    assert rows["memory"].title.startswith("Host memory")


def test_diagnose_says_why_there_is_no_verdict(recorded: Path) -> None:
    done = subprocess.run([sys.executable, "-P", str(ENTRY), "diagnose", str(recorded), "--json"],
                          capture_output=True, text=True, timeout=120, check=False)
    told = json.loads(done.stdout)
    assert told["verdict"] == "unknown" and "watched" in told["reason"]
