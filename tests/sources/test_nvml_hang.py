"""Calls of the driver that hang (N11): they cost themselves alone, whichever call it is.

Nothing here waits for a call to be late: the stand-in says that it hangs, and until when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sources.planned import FAST, PLANNED

Start = Callable[..., Any]

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
    child.do("attend")
    child.open()
    child.read(times=2)
    child.plan.set(f"hang:0 {symbol}")
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
    child.do("attend")
    child.open()
    child.read_slow(times=2)
    child.plan.set("gpm_sm 500", f"hang:0 {symbol}")
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
    child.do("attend")
    child.open()
    child.read()
    child.plan.set(*(f"hang:0 {symbol}" for symbol in FAST))
    child.read(times=30)  # and returns, while the calls do not
    dump = child.dump()
    assert [len(dump.values("gpu.power", gpu=gpu)) for gpu in (0, 1)] == [1, 31]
    child.plan.set()
    assert child.do("settle")
    child.read()
    dump = child.dump()
    assert [e.kind for e in dump.events if e.data["field"] == "power"] == ["field_absent", "field_back"]
    assert {e.data["reason"] for e in dump.kinds("field_absent")} == {"the driver does not answer this call"}
    assert {e.device for e in dump.events} == {1}
    for metric in PLANNED:  # the call that hung answered in the end, and was asked again
        assert len(dump.values(metric)) == 3 and len(dump.values(metric, gpu=1)) == 32, metric


def test_n11_a_device_that_hangs_at_the_start_leaves_the_others(start_nvml: Start) -> None:
    child = start_nvml("gpus 3", "hang:1 nvmlDeviceGetMemoryInfo_v2")
    child.do("attend")
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
    child.do("attend")
    child.open()
    child.plan.set("gpus 1", "hang nvmlDeviceGetPowerUsage")
    child.read()
    child.plan.add("ret nvmlInitWithFlags 18")  # once shut down, it would not come back
    child.do("call", source="fast", method="close")
    child.read_slow()
    assert child.dump().values("gpu.pcie_rx") == [1_000_000]
