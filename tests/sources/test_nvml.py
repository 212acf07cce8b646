"""The NVML sources against the stand-in library. N01 to N17 name failure cases known from the field."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.metrics import METRICS
from profiler.sources import _library
from tests.fakes import nvml

Start = Callable[..., Any]
MIB = 1 << 20

PLAN = (
    "util 37",
    "util:1 91",
    "mem_util 12",
    "power_mw 123456",
    "power_mw:1 654321",
    "energy_mj 5000500",
    "temp_c 61",
    "clock_sm 1755",
    "clock_mem 2619",
    "throttle 0x24",
    "throttle:1 0",
    "pcie_rx_kb 4321",
    "pcie_tx_kb 1234",
)
PLANNED = {
    "gpu.util": 0.37,
    "gpu.mem_util": 0.12,
    "gpu.mem_used": 1024 * MIB,
    "gpu.mem_reserved": 300 * MIB,
    "gpu.mem_free": 80596 * MIB,
    "gpu.power": 123.456,
    "gpu.energy": 5000.5,
    "gpu.temperature": 61,
    "gpu.clock_sm": 1755,
    "gpu.clock_mem": 2619,
    "gpu.throttle": 0x24,
}


def test_planned_values_arrive_exactly_on_each_device(start_nvml: Start) -> None:
    child = start_nvml(*PLAN)
    child.open()
    child.read(times=3)
    child.read_slow()
    dump = child.dump()
    for metric, value in PLANNED.items():
        assert dump.values(metric) == [value] * 3, metric
    assert dump.values("gpu.util", gpu=1) == [0.91] * 3
    assert dump.values("gpu.power", gpu=1) == [654.321] * 3
    assert dump.values("gpu.throttle", gpu=1) == [0] * 3
    assert dump.values("gpu.temperature", gpu=1) == [61] * 3
    assert dump.values("gpu.pcie_rx") == [4_321_000] and dump.values("gpu.pcie_tx") == [1_234_000]
    assert {t.metric for t in dump.tracks} <= METRICS.keys()
    assert dump.events == []


def test_values_follow_the_world_while_it_changes(start_nvml: Start) -> None:
    child = start_nvml("util 1")
    child.open()
    seen = []
    for number in (1, 2, 3, 100, 0):
        child.plan.set(f"util {number}")
        child.read()
        seen.append(number / 100)
    assert child.dump().values("gpu.util") == seen


def test_devices_carry_identity_and_properties(start_nvml: Start) -> None:
    child = start_nvml(
        "gpus 16",
        "uuid:3 GPU-three",
        "name:3 NVIDIA Third",
        "mem_total:3 1000",
        "driver 571.2",
        "cuda 12040",
        "power_limit_mw:3 350000",
    )
    child.open()
    dump = child.dump()
    assert len(dump.devices) == 16
    third = dump.devices[3]
    assert (third.uuid, third.index, third.name, third.memory_total, third.kind) == (
        "GPU-three",
        3,
        "NVIDIA Third",
        1000,
        "cuda",
    )
    assert third.properties == {
        "power_limit_w": 350.0,
        "max_clock_sm": 1980,
        "max_clock_mem": 2619,
        "pcie_gen": 5,
        "pcie_width": 16,
        "pcie_gen_now": 5,
        "pcie_width_now": 16,
        "compute_capability": "9.0",
    }
    gpu = dump.meta["gpu"]
    assert (gpu["state"], gpu["driver"], gpu["cuda_driver"], gpu["nvml"]) == (
        "ok",
        "571.2",
        "12.4",
        "13.580.00",
    )


def test_unknown_key_in_a_plan_fails_loudly(start_nvml: Start, nvml_library: Path, tmp_path: Path) -> None:
    plan = nvml.Plan(tmp_path / "bad", "utli 3")
    child = subprocess.run(
        [sys.executable, "-c", "import pynvml; pynvml.nvmlInit()"],
        env=nvml.environment(nvml_library, plan),
        capture_output=True,
        text=True,
    )
    assert child.returncode == -6 and "utli 3" in child.stderr


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
    child.read(times=550)
    dump = child.dump()
    assert dump.values(metric) == [] and not [t for t in dump.tracks if t.metric == metric and t.device == 1]
    assert len(dump.values(metric, gpu=1)) == 550
    lost = {"gpu.util": {"gpu.util", "gpu.mem_util"}, "gpu.clock_sm": {"gpu.clock_sm", "gpu.clock_mem"}}.get(
        metric, {metric}
    )
    for other in PLANNED.keys() - lost:
        assert len(dump.values(other)) == 550, other
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
print(nvml.describe()["state"])
"""
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    # A directory of that name is no library: dlopen fails, whatever else the machine has.
    (tmp_path / nvml.SONAME).mkdir()
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**env, "LD_LIBRARY_PATH": str(tmp_path)},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() in ("absent", "ok")  # ok: the machine that runs the tests has a GPU


def test_no_gpu_at_all_is_said(start_nvml: Start) -> None:
    child = start_nvml("gpus 0")
    assert "error" in child.ask("call", source="fast", method="open")
    assert child.dump().meta["gpu"]["cause"] == "no_devices"


def test_n07_name_that_is_no_utf8(start_nvml: Start) -> None:
    child = start_nvml("name \\xf8\\x84bad", "name:1 \\xff")
    child.open()
    child.read()
    dump = child.dump()
    assert [d.name for d in dump.devices] == ["\ufffd\ufffdbad", "\ufffd"]
    assert len(dump.values("gpu.util")) == 1


def test_n07_no_name_falls_back_to_the_index(start_nvml: Start) -> None:
    child = start_nvml("ret:0 nvmlDeviceGetName 999", "name:1 \\x01\\x02")
    child.open()
    assert [d.name for d in child.dump().devices] == ["GPU 0", "GPU 1"]


def test_n07_binding_that_returns_bytes(start_nvml: Start) -> None:
    child = start_nvml("name A\\xc3\\xa9")
    child.do("names_as_bytes")
    child.open()
    dump = child.dump()
    assert dump.devices[0].name == "Aé" and dump.devices[0].uuid == "GPU-00000000-0000-0000-0000-000000000000"


def test_n08_version_of_the_memory_query_is_recorded(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read()
    older = start_nvml("gpus 1", "ret nvmlDeviceGetMemoryInfo_v2 13")
    older.open()
    older.read()
    for one, used, version in ((child, 1024, "v2"), (older, 1324, "v1")):
        dump = one.dump()
        assert dump.values("gpu.mem_used") == [used * MIB]
        (track,) = [t for t in dump.tracks if t.metric == "gpu.mem_used"]
        assert track.properties["version"] == version
    assert child.dump().values("gpu.mem_reserved") == [300 * MIB]
    assert older.dump().values("gpu.mem_reserved") == []  # v1 does not tell it: missing, not zero


def test_n08_a_run_never_changes_from_one_version_to_the_other(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read()
    child.plan.set("gpus 1", "ret nvmlDeviceGetMemoryInfo_v2 999")
    child.read(times=3, step_s=61)
    dump = child.dump()
    assert dump.values("gpu.mem_used") == [1024 * MIB]
    assert [e.data["metrics"][0] for e in dump.kinds("field_absent")] == ["gpu.mem_used"]


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


def test_n11_slow_calls_hold_up_no_fast_ones(start_nvml: Start) -> None:
    child = start_nvml("pcie_block_ms 600000")
    child.open()
    child.do("start_slow_read")
    child.read(times=20)
    dump = child.dump()
    assert child.do("slow_runs") is True
    assert len(dump.values("gpu.util", gpu=1)) == 20 and dump.values("gpu.pcie_rx") == []


def test_n11_each_value_carries_its_own_time(start_nvml: Start) -> None:
    child = start_nvml()
    child.open()
    child.read()
    child.read_slow()
    dump = child.dump()
    fields = (
        "gpu.util",
        "gpu.mem_used",
        "gpu.power",
        "gpu.energy",
        "gpu.clock_sm",
        "gpu.clock_mem",
        "gpu.pcie_rx",
        "gpu.pcie_tx",
    )
    times = [dump.samples(metric, gpu)[0][0] for metric in fields for gpu in (0, 1)]
    assert len(set(times)) == len(times)


def test_n13_absurd_power_is_left_out_and_flagged(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "power_mw 100000")
    child.open()
    child.read()
    child.plan.set("gpus 1", "power_mw 3700000000")
    child.read(times=3)
    child.plan.set("gpus 1", "power_mw 110000")
    child.read()
    dump = child.dump()
    assert dump.values("gpu.power") == [100, 110]
    (event,) = dump.kinds("implausible")
    assert event.data["raw"] == 3_700_000 and event.severity == "warning" and event.device == 1
    assert len(dump.values("gpu.util")) == 5


@pytest.mark.parametrize(
    "limit, power, kept",
    [
        ("power_limit_mw 100000", 300000, True),
        ("power_limit_mw 100000", 300001, False),
        ("ret nvmlDeviceGetEnforcedPowerLimit 3", 2000000, True),
        ("ret nvmlDeviceGetEnforcedPowerLimit 3", 2200000, False),
    ],
)
def test_n13_bound_is_three_times_the_limit_else_two_kilowatts(
    start_nvml: Start, limit: str, power: int, kept: bool
) -> None:
    child = start_nvml("gpus 1", limit, "ret nvmlDeviceGetPowerManagementLimit 3", f"power_mw {power}")
    child.open()
    child.read()
    assert child.dump().values("gpu.power") == ([power / 1000] if kept else [])


def test_impossible_utilization_is_left_out(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "util 4096")
    child.open()
    child.read()
    dump = child.dump()
    assert dump.values("gpu.util") == [] and len(dump.kinds("implausible")) == 1


def test_n14_missing_energy_counter_is_missing(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetTotalEnergyConsumption 3")
    child.open()
    child.read(times=2)
    dump = child.dump()
    assert dump.values("gpu.energy") == [] and len(dump.values("gpu.power")) == 2


def test_n14_counter_that_falls_is_stored_as_it_is(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "energy_mj 1000000")
    child.open()
    child.read()
    child.plan.set("gpus 1", "energy_mj 50")
    child.read()
    dump = child.dump()
    assert dump.values("gpu.energy") == [1000.0, 0.05]
    assert [t.properties["method"] for t in dump.tracks if t.metric == "gpu.energy"] == ["counter"]


def test_n15_memory_of_a_process_that_is_not_told_is_missing(start_nvml: Start) -> None:
    child = start_nvml(
        "gpus 1", "procs 1", "proc_mem 18446744073709551615", "ret nvmlDeviceGetUtilizationRates 999"
    )
    child.open()
    child.read(times=2)
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [1] and dump.values("gpu.process_mem") == []
    assert dump.values("gpu.util") == [] and len(dump.values("gpu.power")) == 2
    assert dump.kinds("device_lost") == []


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


def test_n16_pids_that_are_not_of_the_tree_are_others(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 1", "proc_pid 999999")
    child.do("follow", pid=os.getpid())
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", "procs 1", f"proc_pid {os.getppid()}")  # lives, and is not the target's
    child.read_slow()
    child.plan.set("gpus 1", "procs 1", f"proc_pid {os.getpid()}", "proc_mem 77")
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [1, 1, 1]
    assert dump.values("gpu.other_processes") == [1, 1, 0]
    assert dump.values("gpu.process_mem", index=os.getpid()) == [77]
    whose = {t.index: t.properties["whose"] for t in dump.tracks if t.metric == "gpu.process_mem"}
    assert whose == {999999: "outside this namespace", os.getppid(): "other", os.getpid(): "target"}


def test_others_are_not_counted_without_a_target(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 3", "graphics_procs 5")
    child.open()
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [5]  # three of the five do both, and count once
    assert dump.values("gpu.other_processes") == []


def test_processes_whose_memory_is_followed_are_bounded(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 100")
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", "procs 100", "proc_pid 5000")
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [100, 100]
    assert len([t for t in dump.tracks if t.metric == "gpu.process_mem"]) == 32


def test_n17_library_shut_down_under_us_is_started_again(start_nvml: Start) -> None:
    child = start_nvml("gpus 2", "util 1")
    child.open()
    child.read()
    child.plan.set("gpus 2", "util 2", "lost_init 1")
    child.read(times=2)
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.util") == [0.01, 0.02, 0.02] == dump.values("gpu.util", gpu=1)
    assert dump.values("gpu.pcie_rx") == [1_000_000]
    assert dump.events == []


def test_n17_one_call_that_stays_uninitialized_costs_that_field_alone(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret@20 nvmlDeviceGetUtilizationRates 1")
    child.open()
    child.read(times=100)
    dump = child.dump()
    assert len(dump.values("gpu.util")) == 19 and len(dump.values("gpu.power")) == 100
    assert len(dump.kinds("field_absent")) == 1


def test_lost_device_is_off_and_the_others_go_on(start_nvml: Start) -> None:
    child = start_nvml()
    child.open()
    child.read()
    child.plan.set("ret_all:0 15")
    child.read(times=5)
    child.read_slow(times=2)
    dump = child.dump()
    assert len(dump.values("gpu.util")) == 1 and len(dump.values("gpu.util", gpu=1)) == 6
    assert dump.values("gpu.pcie_rx") == [] and len(dump.values("gpu.pcie_rx", gpu=1)) == 2
    (event,) = dump.events
    assert (event.kind, event.severity, event.device) == ("device_lost", "error", 1)
    child.plan.set()
    child.read(step_s=61)
    dump = child.dump()
    assert len(dump.values("gpu.util")) == 2
    assert [e.kind for e in dump.events] == ["device_lost", "device_back"]


def test_device_that_does_not_answer_at_the_start_leaves_the_others(start_nvml: Start) -> None:
    child = start_nvml("gpus 3", "ret:1 nvmlDeviceGetHandleByIndex_v2 15")
    child.open()
    child.read()
    dump = child.dump()
    assert [d.index for d in dump.devices] == [0, 2] and len(dump.values("gpu.util", gpu=2)) == 1
    assert [e.kind for e in dump.events] == ["device_absent"] and "GPU 1" in dump.events[0].text


def test_close_while_a_slow_call_is_in_flight_shuts_nothing_down(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read_slow()
    child.do("call", source="fast", method="close")
    child.read_slow()
    assert child.dump().values("gpu.pcie_rx") == [1_000_000] * 2
    child.do("call", source="slow", method="close")


def test_describe_tells_the_devices(start_nvml: Start) -> None:
    child = start_nvml("name Big", "driver 580.1")
    told = child.do("describe")
    assert told["state"] == "ok" and told["driver"] == "580.1"
    assert [d["name"] for d in told["devices"]] == ["Big", "Big"]
