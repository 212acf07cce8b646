"""The NVML sources against the stand-in library. N07 to N14 name failure cases known from the field."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.metrics import METRICS
from tests.fakes import nvml
from tests.sources.planned import MIB, PLAN, PLANNED

Start = Callable[..., Any]


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
        "power_limit_default_w": 700.0,
        "app_clock_sm": 1980,
        "max_clock_sm": 1980,
        "max_clock_mem": 2619,
        "pcie_gen": 5,
        "pcie_width": 16,
        "pcie_gen_card": 5,
        "pcie_gen_now": 5,
        "pcie_width_now": 16,
        "pci_bus_id": "00000000:13:00.0",
        "nvlink_peers": {"00000000:14:00.0": 4},
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


@pytest.mark.parametrize(
    ("line", "metric", "good"),
    [
        ("temp_c 4294967295", "gpu.temperature", 40),
        ("clock_sm 4294967295", "gpu.clock_sm", 1500),
        ("clock_mem 4294967295", "gpu.clock_mem", 2600),
        ("mem_used 18446744073709551615", "gpu.mem_used", 1024 << 20),
        ("energy_mj 18446744073709551615", "gpu.energy", 1000),
        ("mem_util 255", "gpu.mem_util", 0),
    ],
)
def test_n13_all_bits_set_is_no_value(start_nvml: Start, line: str, metric: str, good: float) -> None:
    """At the first tick, and once the field has been read without a complaint."""
    child = start_nvml("gpus 1", line)
    child.open()
    child.read()
    child.plan.set("gpus 1")
    child.read(times=2)
    child.plan.set("gpus 1", line)
    child.read(times=2)
    dump = child.dump()
    assert dump.values(metric) == [good, good]
    assert len(dump.kinds("implausible")) == 2 and len(dump.values("gpu.power")) == 5


def test_n13_totals_that_cannot_be_are_none(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "mem_total 18446744073709551615", "power_limit_mw 4294967295",
                       "power_mw 4000000000")
    child.open()
    child.read()
    (device,) = child.dump().devices
    assert device.memory_total is None and not device.properties.get("unified_memory")
    assert child.dump().values("gpu.power") == []


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


def test_describe_tells_the_devices(start_nvml: Start) -> None:
    child = start_nvml("name Big", "driver 580.1")
    told = child.do("describe")
    assert told["state"] == "ok" and told["driver"] == "580.1"
    assert [d["name"] for d in told["devices"]] == ["Big", "Big"]
