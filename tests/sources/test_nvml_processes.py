"""Who uses a GPU. N15 and N16 name failure cases known from the field."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]


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
    child.do("follow", pid=os.getpid())  # the target may start after the sources
    child.read_slow()
    assert child.dump().values("gpu.other_processes") == [5]


def test_processes_whose_memory_is_followed_are_bounded(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 100")
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", "procs 100", "proc_pid 5000")
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [100, 100]
    assert len([t for t in dump.tracks if t.metric == "gpu.process_mem"]) == 32


def test_utilization_of_each_process_is_of_those_on_the_list(start_nvml: Start) -> None:
    plan = ("gpus 1", "procs 2", "proc_use 40", "proc_use_count 2", "proc_use_pid 1001")
    child = start_nvml(*plan, f"proc_use_stamp_us {time.time_ns() // 1000 - 1_000_000}")
    child.open()
    child.read_slow()
    child.plan.set(*plan)
    dump = child.dump()
    # What was sampled before the first look is not of this run; where nothing was, nothing was done.
    assert dump.values("gpu.process_util", index=1001) == []
    child.read_slow(times=2)
    dump = child.dump()
    assert dump.values("gpu.process_util", index=1001) == [0.4] * 2
    assert dump.values("gpu.process_util", index=1000) == [0] * 3
    assert dump.values("gpu.process_util", index=1002) == []  # not on the list: it has ended
    (track,) = {t.index: t for t in dump.tracks if t.metric == "gpu.process_util"}.keys() - {1000}
    assert track == 1001 and dump.kinds("field_absent") == []


@pytest.mark.parametrize("missing", ["ret nvmlDeviceGetProcessesUtilizationInfo 13",
                                     "ret nvmlDeviceGetProcessesUtilizationInfo 3", ""])
@pytest.mark.parametrize("empty", [6, 0])
def test_n12_nothing_found_is_zero_of_living_processes(start_nvml: Start, missing: str, empty: int) -> None:
    older = [missing] if missing else []
    # The binding makes an error of value 0 of a size of none that is told as a success.
    child = start_nvml("gpus 1", "procs 1", f"proc_use_none {empty}", *older)
    child.open()
    child.read_slow(times=2)
    child.plan.set("gpus 1", *older)
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.process_util") == [0, 0]  # and nothing of a process that has ended
    assert dump.kinds("field_absent") == []


def test_n12_a_list_that_is_not_found_is_empty(start_nvml: Start) -> None:
    """As some drivers say that nobody uses the GPU: no gap, and no error."""
    lists = [f"ret nvmlDeviceGet{kind}RunningProcesses{version} 6"
             for kind in ("Compute", "Graphics") for version in ("", "_v2", "_v3")]
    child = start_nvml("gpus 1", "procs 1")
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", "procs 1", *lists)
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.processes") == [1, 0] and dump.kinds("field_absent") == []


def test_n12_impossible_shares_and_stale_stamps_give_nothing(start_nvml: Start) -> None:
    plan = ["gpus 1", "procs 1", "proc_use 30", "proc_use_count 1"]
    child = start_nvml(*plan)
    child.open()
    child.read_slow()
    for junk in (4096, 1_000_000_000):
        child.plan.set(*plan, f"proc_use {junk}")
        child.read_slow()
    child.plan.set(*plan, "proc_use 10", f"proc_use_stamp_us {(time.time_ns() // 1000) - 5_000_000}")
    child.read_slow(times=2)
    child.plan.set(*plan, "proc_use 20")
    child.read_slow()
    dump = child.dump()
    assert dump.values("gpu.process_util") == [0.3, 0.2]
    (told,) = dump.kinds("implausible")
    assert "utilization by process" in told.text


def test_n12_samples_of_a_process_that_is_gone_are_dropped_and_the_rest_bounded(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 1", "proc_use 1000000000", "proc_use_count 100", "proc_use_pid 1001")
    child.open()
    child.read_slow(times=3)
    dump = child.dump()
    assert dump.values("gpu.process_util") == [0] * 3 and dump.kinds("implausible") == []
    child.plan.set("gpus 1", "procs 100", "proc_use 50", "proc_use_count 100")
    child.read_slow(times=2)
    tracks = [t for t in child.dump().tracks if t.metric == "gpu.process_util"]
    assert len(tracks) == 32


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000


def test_n12_stamps_of_the_monotonic_clock_are_as_good(start_nvml: Start) -> None:
    plan = ("gpus 1", "procs 1", "proc_use 30", "proc_use_count 1")
    child = start_nvml(*plan)
    child.open()
    child.plan.set(*plan, f"proc_use_stamp_us {monotonic_us() - 1_000_000}")  # before the first look
    child.read_slow()
    for _ in range(2):
        child.plan.set(*plan, f"proc_use_stamp_us {monotonic_us()}")
        child.read_slow(times=2)  # the second time it is not new
    assert child.dump().values("gpu.process_util") == [0.3, 0.3]


def test_utilization_by_process_stamped_by_no_clock_is_missing_with_its_reason(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 1", "proc_use 30", "proc_use_count 1", "proc_use_stamp_us 77")
    child.open()
    child.read_slow(times=5)
    dump = child.dump()
    assert dump.values("gpu.process_util") == []
    (told,) = dump.kinds("field_absent")
    assert "clock that is not known" in told.text and told.data["metrics"] == ["gpu.process_util"]


@pytest.mark.parametrize("code", [2, 3, 4, 7, 9, 10, 12, 13, 18, 25, 999, 12345])
def test_an_error_of_utilization_by_process_costs_that_alone(start_nvml: Start, code: int) -> None:
    plan = ("procs 1", "proc_use 30", "proc_use_count 1")
    child = start_nvml(*plan)
    child.open()
    child.read_slow(times=2)
    wrong = [f"ret:0 {name} {code}" for name in ("nvmlDeviceGetProcessesUtilizationInfo",
                                                  "nvmlDeviceGetProcessUtilization")]
    before = child.do("counts")
    child.plan.set(*plan, *wrong)
    child.read_slow(times=3)
    after = child.do("counts")
    new = {name: after[name] - before[name] for name in after}
    assert new.pop("gpu.process_util 0") == 0 and set(new.values()) == {3}
    child.plan.set(*plan)
    child.read_slow(step_s=61)
    dump = child.dump()
    assert child.do("counts")["gpu.process_util 0"] == before["gpu.process_util 0"] + 1
    assert [e.kind for e in dump.events] == ["field_absent", "field_back"]


def test_utilization_by_process_is_asked_of_no_slice(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "mig 1", "procs 1", "ret nvmlDeviceGetProcessesUtilizationInfo 3",
                       "ret nvmlDeviceGetProcessUtilization 3")
    child.open()
    child.read_slow(times=2)
    dump = child.dump()
    assert dump.values("gpu.process_util") == []
    assert [e.device for e in dump.kinds("field_absent")] == [1]  # the card's


def test_n12_pids_that_are_on_no_list_are_dropped(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "procs 1", "proc_use 50", "proc_use_count 3", "proc_use_pid 1000")
    child.open()
    child.read_slow(times=3)
    tracks = [t for t in child.dump().tracks if t.metric == "gpu.process_util"]
    assert {t.index for t in tracks} == {1000}
