"""Every call answers every error: the rest keeps every tick. Other faults: test_nvml_every_call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sources.planned import FAST

Start = Callable[..., Any]
GPM = {"gpu.sm_active", "gpu.sm_occupancy", "gpu.tensor_active", "gpu.dram_active"}
# What a call of a device is for; of those that something else stands in for, nothing.
SLOW = {
    "nvmlDeviceGetPcieThroughput": {"gpu.pcie_rx", "gpu.pcie_tx"},
    "nvmlGpmSampleGet": GPM, "nvmlGpmMetricsGet": GPM,
    "nvmlDeviceGetComputeRunningProcesses_v3": {"gpu.processes"},
    "nvmlDeviceGetGraphicsRunningProcesses_v3": set(),
    "nvmlDeviceGetTotalEccErrors": {"gpu.ecc_corrected", "gpu.ecc_uncorrected"},
    "nvmlDeviceGetRemappedRows": {"gpu.rows_replaced", "gpu.rows_pending", "gpu.rows_failed"},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"gpu.pcie_gen", "gpu.pcie_width"},
    "nvmlDeviceGetCurrPcieLinkWidth": {"gpu.pcie_gen", "gpu.pcie_width"},
    "nvmlDeviceGetNvLinkState": {"gpu.nvlinks"},
    "nvmlEventSetWait_v2": set(), "nvmlDeviceGetSamples": set(),
}  # fmt: skip
EVERY = {"fast": set().union(*FAST.values()), "slow": set().union(*SLOW.values())}
# 1, 15 and 16 are of the library and the device: see test_nvml_lost. After 13 an older call is used for good.
CODES = (2, 3, 4, 6, 7, 9, 10, 12, 18, 25, 999, 12345, 13)
PLAN = ("util 37", "mem_util 12", "power_mw 123456", "temp_c 61", "clock_sm 1755", "clock_mem 2619",
        "energy_mj 5000500", "gpm_sm 500")  # fmt: skip


@pytest.mark.parametrize(("source", "calls"), [("fast", FAST), ("slow", SLOW)])
def test_every_error_of_every_call_costs_what_the_call_is_for(
    start_nvml: Start, source: str, calls: dict[str, set[str]]
) -> None:
    child = start_nvml(*PLAN)
    child.open()

    def read(times: int, step_s: float) -> dict[str, int]:
        child.do("read", source=source, times=times, step_s=step_s)
        counts: dict[str, int] = child.do("counts")
        return counts

    read(2, 1.0)
    for code in CODES:
        for symbol, metrics in calls.items():
            before = read(2, 61.0)  # whatever was away is asked again, and is back
            child.plan.set(*PLAN, f"ret:0 {symbol} {code}")
            after = read(3, 1.0)
            new = {name: after[name] - before[name] for name in after}
            for metric in EVERY[source] - metrics:
                assert new[f"{metric} 0"] == 3, (symbol, code, metric)
            none = {"gpu.processes"} if code in (6, 13) else set()  # there are none; the older call tells
            for metric in metrics - none:
                assert new[f"{metric} 0"] == 0, (symbol, code, metric)
            assert {new[f"{metric} 1"] for metric in EVERY[source]} == {3}, (symbol, code)
            child.plan.set(*PLAN)
