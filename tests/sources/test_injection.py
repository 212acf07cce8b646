"""Drivers that lack calls, and masks of all bits: what is left keeps every tick, nothing is invented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import nvml
from tests.sources.test_nvml_faults import FAST, PLAN, SLOW

Start = Callable[..., Any]
OLDER = {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetComputeRunningProcesses_v3"}  # another call stands in for each


def _told_once(dump: Any) -> None:
    absent = Counter((event.device, event.data["field"]) for event in dump.kinds("field_absent"))
    assert not absent or set(absent.values()) == {1}, absent


@pytest.mark.slow
@pytest.mark.parametrize("symbol", FAST)
def test_a_driver_without_one_call(symbol: str, start_nvml: Start, tmp_path: Path) -> None:
    child = start_nvml(*PLAN, library=nvml.build(tmp_path / "library", [symbol]))
    child.open()
    child.read(times=20)
    dump = child.dump()
    for other, metrics in FAST.items():
        for metric in metrics - {"gpu.mem_reserved"}:
            kept = other != symbol or symbol in OLDER
            assert len(dump.values(metric)) == (20 if kept else 0), metric
    _told_once(dump)


def test_a_driver_without_most_calls(start_nvml: Start, tmp_path: Path) -> None:
    """What is left of it is read at every tick; each missing field is told once for each device."""
    left = "nvmlDeviceGetUtilizationRates"
    without = [symbol for symbol in (*FAST, *SLOW) if symbol != left]
    child = start_nvml(*PLAN, library=nvml.build(tmp_path / "library", without))
    child.open()
    child.read(times=20)
    child.read_slow(times=3)
    dump = child.dump()
    for gpu in (0, 1):
        assert dump.values("gpu.util", gpu=gpu) == [0.37] * 20
        for metric in ("gpu.power", "gpu.energy", "gpu.clock_sm", "gpu.pcie_rx", "gpu.sm_active"):
            assert dump.values(metric, gpu=gpu) == [], metric
    assert dump.kinds("field_absent")
    _told_once(dump)


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF])
def test_a_mask_of_all_bits_is_no_throttling(mask: int, start_nvml: Start) -> None:
    child = start_nvml(*PLAN, "throttle 4", f"throttle:1 {mask}")
    child.open()
    child.read(times=5)
    dump = child.dump()
    assert dump.values("gpu.throttle") == [4] * 5
    assert dump.values("gpu.throttle", gpu=1) == []
    assert [event.device for event in dump.kinds("implausible")] == [2]
