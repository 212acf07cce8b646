"""From an odd driver through a recording to its file, report and live panel, case by case."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from profiler import sources
from profiler.report import facts, html
from profiler.run.reader import Run
from tests.fakes import nvml
from tests.runs import make_run
from tests.sources.conftest import NvmlChild
from tests.sources.test_nvml_run import monitor, values

MIB = 1 << 20
# GPU 0 tells little, GPU 1 nonsense now and then.
ODD = ("gpus 2", "name:0 \\xf8\\x84bad", "util:0 37", "ret:0 nvmlDeviceGetPowerUsage 3",
       "ret:0 nvmlDeviceGetTotalEnergyConsumption 3", "ret:0 nvmlDeviceGetMemoryInfo_v2 13", "procs:0 2",
       f"proc_pid {os.getpid()}", "proc_mem 18446744073709551615", "ret:1 nvmlDeviceGetUtilizationRates 999",
       "power_mw:1 100000")  # fmt: skip


@pytest.fixture(scope="module")
def run(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("odd")
    plan = nvml.Plan(folder / "plan", *ODD)
    seen: list[int] = []

    def complete(live: Run) -> bool:
        kinds = [event.kind for event in live.events()]
        tracks = live.find("gpu.power")
        if not seen and tracks and live.find("gpu.processes"):
            seen.append(1)
            plan.set(*ODD, "power_mw:1 3700000000")
        elif len(seen) == 1 and "implausible" in kinds:
            seen.append(2)
            plan.set(*ODD, "power_mw:1 110000")
        return len(seen) == 2 and "field_back" in kinds and live.latest(tracks[0].id)[1] == 110.0

    opened = monitor(folder / "odd.stepscope", nvml.environment(nvml_library, plan), complete)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def report(run: Run) -> str:
    return unescape(html.render(run)).replace("\u00a0", " ")


def _of(run: Run, gpu: int) -> int:
    return next(device.id for device in run.devices if device.index == gpu)


def test_n01_an_unsupported_field_is_missing_in_the_file_and_in_the_report_with_its_reason(
    run: Run, report: str
) -> None:
    assert not run.find("gpu.power", device=_of(run, 0)) and values(run, "gpu.util", 0) == {0.37}
    [event] = [e for e in run.events() if e.kind == "field_absent" and "gpu.power" in e.data["metrics"]]
    assert event.device == _of(run, 0) and "GPU 0, power is not read: not supported" in report
    assert report.count("GPU 0, power is not read") == 1
    rows = pytest.importorskip("app.live.rows")
    said = rows.absent_reason(run, run.events(), "gpu.power", next(d for d in run.devices if d.index == 0))
    assert said == event.text  # in the window, in the chart's place


def test_n07_a_name_that_is_no_text_is_kept_and_shown(run: Run, report: str) -> None:
    assert run.devices[0].name == "\ufffd\ufffdbad" and "\ufffd\ufffdbad" in report


def test_n08_the_report_says_by_which_query_used_memory_was_read(run: Run, report: str) -> None:
    versions = {track.device: track.properties["version"] for track in run.find("gpu.mem_used")}
    assert versions == {_of(run, 0): "v1", _of(run, 1): "v2"}
    assert report.count("v1 query") == 1 and values(run, "gpu.mem_used", 0) == {1324 * MIB}


def test_n13_absurd_power_is_in_no_peak_axis_or_mean_and_the_report_says_so(run: Run, report: str) -> None:
    assert values(run, "gpu.power", 1) <= {100.0, 110.0}
    [track] = run.find("gpu.power", device=_of(run, 1))
    series = run.series(track.id, points=50)
    assert float(series.high.max()) == 110.0 and np.isfinite(series.low).all()
    [event] = [e for e in run.events() if e.kind == "implausible"]
    assert event.data["raw"] == 3_700_000 and event.text in report  # kept, and flagged
    assert "3 700 000" not in report.replace(event.text, "")


def test_n13_where_no_value_was_plausible_the_window_says_so(run: Run) -> None:
    rows = pytest.importorskip("app.live.rows")
    [event] = [e for e in run.events() if e.kind == "implausible"]
    card = next(d for d in run.devices if d.index == 1)
    assert rows.absent_reason(run, [event], "gpu.power", card) == event.text
    assert rows.absent_reason(run, [event], "gpu.util", card) != event.text


def test_n15_a_process_without_memory_is_no_number_and_a_999_drops_no_device(run: Run, report: str) -> None:
    assert values(run, "gpu.processes", 0) == {2} and not run.find("gpu.process_mem", device=_of(run, 0))
    assert not [e for e in run.events() if e.kind == "device_lost"] and values(run, "gpu.clock_sm", 1)
    assert "GPU 1, utilization is not read: the driver answers 'unknown error'" in report


@pytest.mark.parametrize(("code", "advice"), [
    (18, "reboot"), (9, "modprobe"), (4, "/dev/nvidia"), (12, "--gpus all"), (999, "nvidia-smi")])
def test_n05_the_report_gives_each_state_of_the_library_its_own_advice(
    start_nvml: Callable[..., NvmlChild], tmp_path: Path, code: int, advice: str
) -> None:
    child = start_nvml(f"ret nvmlInitWithFlags {code}")
    assert "error" in child.ask("call", source="fast", method="open")
    gpu = child.dump().meta["gpu"]
    with Run.open(make_run(tmp_path / "a.stepscope", meta={"gpu": gpu})) as opened:
        [line] = [line for line in facts.missing(opened) if line.startswith("GPU figures")]
        assert gpu["reason"] in line and advice in line
        assert line in unescape(html.render(opened))


def test_n05_the_library_is_asked_again_on_request(start_nvml: Callable[..., NvmlChild]) -> None:
    child = start_nvml("ret nvmlInitWithFlags 9")
    assert child.do("describe")["cause"] == "driver_not_loaded"
    child.plan.set("gpus 1")
    assert child.do("describe")["state"] == "ok" and len(child.do("describe")["devices"]) == 1


def test_n16_nothing_is_ended_by_a_pid_that_the_driver_tells() -> None:
    """What reads GPUs ends no process; those that the recorder ends are of the tree that it started."""
    folder = Path(sources.__file__).parent
    told = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    users = [name for name, text in told.items() if "RunningProcesses" in text or "gpu.process" in text]
    assert "_gpu_processes.py" in users
    for name in users:
        assert not re.search(r"\.(kill|terminate|send_signal|killpg)\(", told[name]), name
