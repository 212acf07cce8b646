"""Errors, links and limits of GPUs: counts are samples, their changes are events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]


@pytest.mark.parametrize(
    ("before", "line", "kind", "severity", "words"),
    [
        ("ecc_corrected 5", "ecc_corrected 7", "ecc", "info", "corrected memory errors: 2"),
        ("ecc_uncorrected 1", "ecc_uncorrected 2", "ecc", "error", "cannot be corrected: 1"),
        ("remap_corrected 3", "remap_corrected 4", "rows", "warning", "were replaced: 1"),
        ("remap_uncorrected 3", "remap_uncorrected 4", "rows", "warning", "were replaced: 1"),
        ("nvlinks_up 4", "nvlinks_up 1", "nvlink", "warning", "went down: 3"),
    ],
)
def test_a_change_for_the_worse_is_one_event_of_its_device(
    start_nvml: Start, before: str, line: str, kind: str, severity: str, words: str
) -> None:
    child = start_nvml(before)
    child.open()
    child.read_slow(times=3)
    assert child.dump().events == []  # what was there before the run is no event of it
    child.plan.set(before, line.replace(" ", ":1 "))
    child.read_slow(times=3)
    [event] = child.dump().events
    assert (event.kind, event.severity, event.device) == (kind, severity, 2) and words in event.text


@pytest.mark.parametrize(("line", "severity"), [("remap_pending 1", "warning"), ("remap_failed 1", "error")])
def test_memory_that_is_to_be_repaired_is_told_at_the_start(
    start_nvml: Start, line: str, severity: str
) -> None:
    child = start_nvml("gpus 1", line)
    child.open()
    child.read_slow(times=3)
    assert [(e.kind, e.severity) for e in child.dump().events] == [("rows", severity)]


def test_counts_and_links_are_samples(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ecc_corrected 5", "remap_corrected 3", "remap_uncorrected 1", "nvlinks 18",
                       "nvlinks_up 17", "pcie_gen 5", "pcie_gen_now 2", "pcie_width_now 8", "pcie_gen_card 6")
    child.open()
    child.read_slow(times=2)
    dump = child.dump()
    for metric, value in (("gpu.ecc_corrected", 5), ("gpu.ecc_uncorrected", 0), ("gpu.rows_replaced", 4),
                          ("gpu.nvlinks", 17), ("gpu.pcie_gen", 2), ("gpu.pcie_width", 8)):
        assert dump.values(metric) == [value] * 2, metric
    properties = dump.devices[0].properties
    assert (properties["pcie_gen"], properties["pcie_gen_card"], properties["pcie_gen_now"]) == (5, 6, 2)
    assert properties["nvlink_peers"] == {"00000000:11:00.0": 17}
    assert dump.values("gpu.xid") == [] and dump.events == []


@pytest.mark.parametrize(
    ("line", "metric"),
    [("ecc_corrected 18446744073709551615", "gpu.ecc_corrected"),
     ("pcie_width_now 4294967295", "gpu.pcie_width"),
     ("remap_corrected 4294967295", "gpu.rows_replaced")],
)
def test_all_bits_set_is_no_count_and_no_error_of_the_device(
    start_nvml: Start, line: str, metric: str
) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", line)
    child.read_slow(times=2)
    dump = child.dump()
    assert len(dump.values(metric)) == 1 and [e.kind for e in dump.events] == ["implausible"]


def test_each_xid_is_an_event_once(start_nvml: Start) -> None:
    child = start_nvml("xids 4", "xid 13")  # of before the run
    child.open()
    child.read_slow(times=2)
    assert child.dump().events == []
    child.plan.set("xids:0 4", "xids:1 6", "xid 31")
    child.read_slow(times=3)
    dump = child.dump()
    told = [(e.kind, e.severity, e.device, e.data["xid"]) for e in dump.events]
    assert told == [("xid", "error", 2, 31)] * 2
    assert "memory that is not its own" in dump.events[0].text
    assert dump.values("gpu.xid", gpu=1) == [31] and dump.values("gpu.xid") == []


def test_a_flood_of_xids_ends_no_tick_and_fills_no_log(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", "xids 100000")
    child.read_slow(times=5)
    dump = child.dump()
    assert len(dump.kinds("xid")) == 20 and len(dump.values("gpu.xid")) == 5
    assert len(dump.values("gpu.pcie_rx")) == 6


@pytest.mark.parametrize(
    ("symbol", "title"),
    [("nvmlDeviceGetTotalEccErrors", "memory errors (ECC)"), ("nvmlDeviceGetNvLinkState", "NVLinks"),
     ("nvmlDeviceGetRemappedRows", "replaced rows of memory"), ("nvmlDeviceRegisterEvents", "XIDs"),
     ("nvmlDeviceGetCurrPcieLinkWidth", "PCIe link")],
)
def test_what_a_device_does_not_have_is_one_absent_field(start_nvml: Start, symbol: str, title: str) -> None:
    child = start_nvml("gpus 1", f"ret {symbol} 3")
    child.open()
    child.read_slow(times=100)
    dump = child.dump()
    assert [(e.kind, e.data["field"]) for e in dump.events] == [("field_absent", title)]
    assert len(dump.values("gpu.pcie_rx")) == 100
