"""Fields, calls and whole libraries that are not there. N01 to N09 name failure cases of the field."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.sources import _library
from tests.fakes import nvml
from tests.sources.planned import MIB, PLAN, PLANNED

Start = Callable[..., Any]


@pytest.mark.parametrize(
    "symbol, metric",
    [
        ("nvmlDeviceGetUtilizationRates", "gpu.util"),
        ("nvmlDeviceGetPowerUsage", "gpu.power"),
        ("nvmlDeviceGetTotalEnergyConsumption", "gpu.energy"),
        ("nvmlDeviceGetClockInfo", "gpu.clock_sm"),
    ],
)
def test_n01_one_unsupported_field_costs_that_field_alone(
    start_nvml: Start, symbol: str, metric: str
) -> None:
    child = start_nvml(*PLAN, f"ret:0 {symbol} 3")
    child.open()
    child.read(times=1300)  # in which it is asked again twice
    dump = child.dump()
    assert dump.values(metric) == [] and not [t for t in dump.tracks if t.metric == metric and t.device == 1]
    assert len(dump.values(metric, gpu=1)) == 1300
    lost = {"gpu.util": {"gpu.util", "gpu.mem_util"}, "gpu.clock_sm": {"gpu.clock_sm", "gpu.clock_mem"}}.get(
        metric, {metric}
    )
    for other in PLANNED.keys() - lost:
        assert len(dump.values(other)) == 1300, other
    told = [e for e in dump.kinds("field_absent") if metric in e.data["metrics"]]
    assert len(told) == 1 and told[0].device == 1
    assert "not supported" in told[0].text and told[0].data["code"] == 3


def test_n01_absent_field_is_asked_again_rarely_and_comes_back(start_nvml: Start) -> None:
    child = start_nvml("ret nvmlDeviceGetPowerUsage 3")
    child.open()
    child.read()
    child.plan.set("power_mw 7000")
    child.read(times=10, step_s=5)
    assert child.dump().values("gpu.power") == []
    child.read(step_s=11)
    dump = child.dump()
    assert dump.values("gpu.power") == [7.0]
    assert [e.kind for e in dump.events] == ["field_absent", "field_absent", "field_back", "field_back"]


def test_each_change_of_reason_is_told_once(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetPowerUsage 3")
    child.open()
    child.read()
    child.plan.set("gpus 1", "ret nvmlDeviceGetPowerUsage 4")
    child.read(times=3, step_s=61)
    reasons = [e.data["reason"] for e in child.dump().kinds("field_absent")]
    assert reasons == ["not supported by this device or driver", "no permission"]


def test_n02_unified_memory_gives_no_numbers_rather_than_zero(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetMemoryInfo 3", "ret nvmlDeviceGetMemoryInfo_v2 3")
    child.open()
    child.read(times=2)
    dump = child.dump()
    assert dump.devices[0].memory_total is None and dump.devices[0].properties["unified_memory"] is True
    assert not [t for t in dump.tracks if t.metric.startswith("gpu.mem_u") and t.metric != "gpu.mem_util"]
    assert len(dump.values("gpu.util")) == 2 and len(dump.kinds("field_absent")) == 1


def test_n02_the_older_query_is_used_where_the_newer_is_not_supported(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetMemoryInfo_v2 3")
    child.open()
    child.read(times=2)
    dump = child.dump()
    assert dump.values("gpu.mem_used") == [1324 * MIB] * 2
    assert dump.values("gpu.mem_free") == [80596 * MIB] * 2
    assert dump.devices[0].memory_total == 81920 * MIB
    assert "unified_memory" not in dump.devices[0].properties and dump.events == []


def test_n02_total_of_zero_is_no_total(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "mem_total 0")
    child.open()
    child.read(times=2)
    dump = child.dump()
    assert dump.devices[0].memory_total is None and dump.devices[0].properties["unified_memory"] is True
    assert dump.values("gpu.mem_used") == []
    assert "unified memory" in dump.kinds("field_absent")[0].text


def test_n04_older_driver_without_the_newer_calls(start_nvml: Start, tmp_path: Path) -> None:
    library = nvml.build(
        tmp_path / "old",
        without=(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlSystemGetCudaDriverVersion_v2",
            "nvmlDeviceGetTotalEnergyConsumption",
        ),
    )
    child = start_nvml("gpus 1", "procs 2", "throttle 4", library=library)
    child.open()
    child.read(times=2)
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.throttle") == [4, 4]
    assert dump.values("gpu.processes") == [2]
    assert dump.values("gpu.mem_used") == [1324 * MIB] * 2
    assert dump.meta["gpu"]["cuda_driver"] == "13.0"
    (absent,) = dump.kinds("field_absent")
    assert absent.data["metrics"] == ["gpu.energy"] and "too old" in absent.text


def test_n04_no_process_call_at_all_is_one_absent_field(start_nvml: Start, tmp_path: Path) -> None:
    library = nvml.build(
        tmp_path / "older",
        without=[
            f"nvmlDeviceGet{kind}RunningProcesses_v{n}" for kind in ("Compute", "Graphics") for n in (2, 3)
        ],
    )
    child = start_nvml("gpus 1", library=library)
    child.open()
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [] and dump.values("gpu.pcie_rx") == [1_000_000]
    assert [e.data["metrics"] for e in dump.kinds("field_absent")] == [
        ["gpu.processes", "gpu.other_processes"]
    ]


@pytest.mark.parametrize(
    "code, cause, advice",
    [
        (18, "mismatch", "reboot"),
        (9, "driver_not_loaded", "modprobe"),
        (4, "no_permission", "/dev/nvidia"),
        (12, "no_library", "--gpus all"),
        (999, "unknown", "nvidia-smi"),
    ],
)
def test_n05_each_state_of_the_library_has_its_own_advice(
    start_nvml: Start, code: int, cause: str, advice: str
) -> None:
    child = start_nvml(f"ret nvmlInitWithFlags {code}")
    error = child.ask("call", source="fast", method="open")["error"]
    gpu = child.dump().meta["gpu"]
    assert error["type"] == "DeviceError"
    assert (gpu["state"], gpu["cause"]) == ("absent", cause)
    assert gpu["reason"] == error["message"] and gpu["hint"] == error["hint"] and advice in gpu["hint"]
    child.read_slow()  # the slow source has nothing to read and says nothing more
    assert child.dump().events == []
    assert child.do("describe")["cause"] == cause


def test_n05_every_state_reads_differently() -> None:
    hints = [hint for _, _, hint in _library.STATES.values()] + [
        _library.NO_DEVICES[2],
        _library.NO_BINDING[2],
    ]
    assert len(set(hints)) == len(hints)


def test_n05_no_library_at_all_and_nothing_of_nvml_at_import(tmp_path: Path) -> None:
    code = """
import sys
from profiler.sources import host, nvml, nvml_slow, spool
assert "pynvml" not in sys.modules
print(nvml.describe()["cause"])
"""
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    (tmp_path / nvml.SONAME).write_text("no library")  # found first, and unusable, whatever else is there
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**env, "LD_LIBRARY_PATH": str(tmp_path)},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "no_library"


def test_no_gpu_at_all_is_said(start_nvml: Start) -> None:
    child = start_nvml("gpus 0")
    assert "error" in child.ask("call", source="fast", method="open")
    assert child.dump().meta["gpu"]["cause"] == "no_devices"


def test_n09_permission_reads_differently_from_unsupported(start_nvml: Start) -> None:
    child = start_nvml(
        "gpus 1",
        "ret nvmlDeviceGetMemoryInfo 4",
        "ret nvmlDeviceGetMemoryInfo_v2 4",
        "ret nvmlDeviceGetUtilizationRates 3",
    )
    child.open()
    child.read()
    dump = child.dump()
    assert {e.data["field"]: e.data["reason"] for e in dump.kinds("field_absent")} == {
        "memory": "no permission",
        "utilization": "not supported by this device or driver",
    }
    assert "unified_memory" not in dump.devices[0].properties


def test_passing_trouble_costs_a_second_not_a_minute(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetUtilizationRates 999")
    child.open()
    child.read()
    child.plan.set("gpus 1", "util 5")
    child.read(step_s=0.1)
    child.read(step_s=1.0)
    dump = child.dump()
    assert dump.values("gpu.util") == [0.05]
    assert [e.kind for e in dump.events] == ["field_absent", "field_back"]
