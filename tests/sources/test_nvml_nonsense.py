"""Answers that succeed and cannot be: no value, one line when it begins, one when it ends (N13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from profiler.sources._checked import plain

Start = Callable[..., Any]
MIB = 1 << 20


@pytest.mark.parametrize(("line", "metric", "source"), [
    ("temp_c 1000", "gpu.temperature", "fast"), ("temp_c 0", "gpu.temperature", "fast"),
    ("clock_sm 4000000000", "gpu.clock_sm", "fast"), ("clock_mem 0", "gpu.clock_mem", "fast"),
    ("power_mw 0", "gpu.power", "fast"), ("energy_mj 0", "gpu.energy", "fast"),
    (f"mem_used {90_000 * MIB}", "gpu.mem_used", "fast"),
    (f"mem_reserved {90_000 * MIB}", "gpu.mem_reserved", "fast"), ("util 101", "gpu.util", "fast"),
    ("junk nvmlDeviceGetMemoryInfo_v2 partial", "gpu.mem_free", "fast"),
    ("pcie_gen_now 99", "gpu.pcie_gen", "slow"), ("pcie_width_now 4096", "gpu.pcie_width", "slow"),
    ("pcie_rx_kb 4294967295", "gpu.pcie_rx", "slow"), ("gpm_sm 1200", "gpu.sm_active", "slow"),
    ("ecc_uncorrected 18446744073709551615", "gpu.ecc_uncorrected", "slow"),
    ("remap_pending 4294967295", "gpu.rows_pending", "slow"),
    (f"proc_mem {90_000 * MIB}", "gpu.process_mem", "slow"), ("proc_pid 4294967295", "gpu.processes", "slow"),
])  # fmt: skip
def test_n13_what_cannot_be_is_no_value_and_told_twice(
    start_nvml: Start, line: str, metric: str, source: str
) -> None:
    plan = ("procs 1", "gpm_sm 500")
    child = start_nvml(*plan)
    child.open()

    def read(times: int) -> None:
        child.do("read", source=source, times=times, step_s=1.0)

    read(3)
    before = child.dump()
    child.plan.set(*plan, line.replace(" ", ":1 ", 1))
    read(4)
    during = child.dump()
    child.plan.set(*plan)
    read(2)
    after = child.dump()
    good = set(before.values(metric, gpu=1))
    assert len(good) == 1 and set(after.values(metric, gpu=1)) == good
    counts = [len(dump.values(metric, gpu=1)) for dump in (before, during, after)]
    assert counts[0] == counts[1] == counts[2] - 2
    assert len(after.values(metric)) == counts[0] + 6  # of the other device nothing is lost
    assert [(event.kind, event.device) for event in after.events] == [("implausible", 2), ("field_back", 2)]
    assert plain(after.events[0].data)["raw"] is not None  # also where it is no number that JSON can carry


@pytest.mark.parametrize(("line", "name"), [
    ("power_limit_mw 0", "power_limit_w"), ("power_limit_mw 4294967295", "power_limit_w"),
    ("power_default_mw 0", "power_limit_default_w"), ("max_clock_sm 4294967295", "max_clock_sm"),
    ("app_clock_sm 0", "app_clock_sm"), ("pcie_gen 99", "pcie_gen"), ("pcie_width 0", "pcie_width"),
    ("cc_major 4294967295", "compute_capability"), ("junk nvmlDeviceGetPciInfo_v3 huge", "pci_bus_id"),
    ("junk nvmlDeviceGetNvLinkRemotePciInfo_v2 huge", "nvlink_peers")])
def test_a_fact_of_a_device_that_cannot_be_is_not_there(start_nvml: Start, line: str, name: str) -> None:
    child = start_nvml("gpus 1")
    child.open()
    assert name in child.dump().devices[0].properties
    odd = start_nvml("gpus 1", line)
    odd.open()
    assert name not in odd.dump().devices[0].properties


def test_a_count_of_errors_that_falls_and_comes_back_is_no_new_error(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ecc_uncorrected 7")
    child.open()
    for count in (7, 0, 7, 9):
        child.plan.set("gpus 1", f"ecc_uncorrected {count}")
        child.read_slow()
    assert ["cannot be corrected: 2" in event.text for event in child.dump().events] == [True]


def test_xids_that_are_none_are_no_events(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", "xids 1", "xid 4000000000")
    child.read_slow(times=3)
    dump = child.dump()
    assert dump.kinds("xid") == [] and dump.values("gpu.xid") == []
    assert dump.kinds("implausible")[0].data["raw"] == 4_000_000_000
