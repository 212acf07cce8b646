"""Calls of the driver that hang (N11): they cost themselves alone, whichever call it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.sources.planned import FAST, PLANNED

Start = Callable[..., Any]
FOREVER = 600_000

SLOW = {
    "nvmlDeviceGetPcieThroughput": {"gpu.pcie_rx", "gpu.pcie_tx"},
    "nvmlGpmSampleGet": {"gpu.sm_active"},
    "nvmlGpmMetricsGet": {"gpu.sm_active"},
    "nvmlDeviceGetComputeRunningProcesses_v3": {"gpu.processes"},
    "nvmlDeviceGetTotalEccErrors": {"gpu.ecc_corrected"},
    "nvmlDeviceGetRemappedRows": {"gpu.rows_replaced"},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"gpu.pcie_gen"},
    "nvmlDeviceGetNvLinkState": {"gpu.nvlinks"},
    "nvmlEventSetWait_v2": set(),
    "nvmlDeviceGetSamples": set(),
}
OF_SLOW = set().union(*SLOW.values())


@pytest.mark.parametrize("symbol", FAST)
def test_n11_a_fast_call_that_hangs_costs_its_own_field_of_its_own_device(
    start_nvml: Start, symbol: str
) -> None:
    child = start_nvml()
    child.do("hurry")
    child.open()
    child.read(times=2)
    child.plan.set(f"delay_ms:0 {symbol} {FOREVER}")
    child.read(times=20)
    dump = child.dump()
    for metric in PLANNED:
        assert len(dump.values(metric)) == (2 if metric in FAST[symbol] else 22), metric
        assert len(dump.values(metric, gpu=1)) == 22, metric


@pytest.mark.parametrize("symbol", SLOW)
def test_n11_a_slow_call_that_hangs_costs_its_own_field_of_its_own_device(
    start_nvml: Start, symbol: str
) -> None:
    child = start_nvml("gpm_sm 500")
    child.do("hurry")
    child.open()
    child.read_slow(times=2)
    child.plan.set("gpm_sm 500", f"delay_ms:0 {symbol} {FOREVER}")
    child.read_slow(times=5)
    child.read(times=5)
    dump = child.dump()
    for metric in OF_SLOW:
        whole = 7 - (metric == "gpu.sm_active")  # which needs one sample before
        assert len(dump.values(metric)) == (whole - 5 if metric in SLOW[symbol] else whole), metric
        assert len(dump.values(metric, gpu=1)) == whole, metric
    assert len(dump.values("gpu.util")) == 5


def test_n11_a_device_that_hangs_as_a_whole_leaves_the_others_and_comes_back(start_nvml: Start) -> None:
    child = start_nvml()
    child.do("hurry")
    child.open()
    child.read()
    child.plan.set(*(f"delay_ms:0 {symbol} 2500" for symbol in FAST))
    since = time.monotonic()
    child.read(times=30)
    assert time.monotonic() - since < 2  # the ticks did not wait for it
    child.plan.set()
    events: list[str] = []
    while "field_back" not in events and time.monotonic() - since < 20:
        child.read(step_s=0.001)
        events = [event.kind for event in child.dump().events if event.data["field"] == "power"]
    dump = child.dump()
    assert events == ["field_absent", "field_back"]
    assert {e.data["reason"] for e in dump.kinds("field_absent")} == {"the driver does not answer this call"}
    assert {e.device for e in dump.events} == {1}
    assert len(dump.values("gpu.util", gpu=1)) > 31 > len(dump.values("gpu.power")) >= 2


def test_n11_a_device_that_hangs_at_the_start_leaves_the_others(start_nvml: Start) -> None:
    child = start_nvml("gpus 3", f"delay_ms:1 nvmlDeviceGetMemoryInfo_v2 {FOREVER}")
    child.do("hurry")
    child.open()
    child.read(times=3)
    dump = child.dump()
    assert [d.index for d in dump.devices] == [0, 2] and len(dump.values("gpu.util", gpu=2)) == 3
    [event] = dump.events
    assert event.kind == "device_absent" and "GPU 1" in event.text and "does not return" in event.text
    child.plan.add("ret nvmlInitWithFlags 18")
    child.do("call", source="fast", method="close")
    child.read_slow()  # nothing was shut down under the call
    assert len(child.dump().values("gpu.pcie_rx")) == 1


def test_n11_nothing_is_shut_down_under_a_call_that_hangs(start_nvml: Start) -> None:
    child = start_nvml("gpus 1")
    child.do("hurry")
    child.open()
    child.plan.set("gpus 1", f"delay_ms nvmlDeviceGetPowerUsage {FOREVER}")
    child.read()
    child.plan.add("ret nvmlInitWithFlags 18")  # once shut down, it would not come back
    child.do("call", source="fast", method="close")
    child.read_slow()
    assert child.dump().values("gpu.pcie_rx") == [1_000_000]
