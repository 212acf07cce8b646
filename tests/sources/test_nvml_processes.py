"""Who uses a GPU. N15 and N16 name failure cases known from the field."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

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
