"""GPM through NVML: averages between two samples, where the GPU has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from profiler.metrics import METRICS
from profiler.sources import _gpm

Start = Callable[..., Any]


def test_activity_between_readings_of_the_gpus_that_have_it(start_nvml: Start) -> None:
    values = ("gpm_sm 900", "gpm_occupancy 450", "gpm_tensor 301", "gpm_dram 1001")
    child = start_nvml("gpus 2", "gpm:0 0", *values)
    child.open()
    child.read_slow(times=100)  # more than the stand-in would lend samples
    dump = child.dump()
    assert set(_gpm.METRICS) <= METRICS.keys()
    for metric, share in (("gpu.sm_active", 0.9), ("gpu.sm_occupancy", 0.45), ("gpu.tensor_active", 0.301),
                          ("gpu.dram_active", 1.0)):
        assert dump.values(metric, gpu=1) == pytest.approx([share] * 99)  # the first has none before it
        [track] = [track for track in dump.tracks if track.metric == metric]
        assert track.device == 2 and track.properties == {"method": "GPM"}
    [absent] = dump.kinds("field_absent")
    assert absent.device == 1 and "Hopper" in absent.text


def test_pipes_and_links_are_in_our_units(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "gpm_rates 1", "gpm_fp64 10", "gpm_fp32 250", "gpm_fp16 5",
                       "gpm_nvlink_rx 3", "gpm_nvlink_tx 4", "gpm_pcie_rx 5", "gpm_pcie_tx 6")
    child.open()
    child.read_slow(times=3)
    dump = child.dump()
    for metric, value in (("gpu.fp64_active", 0.01), ("gpu.fp32_active", 0.25), ("gpu.fp16_active", 0.005),
                          ("gpu.nvlink_rx", 3 << 20), ("gpu.nvlink_tx", 4 << 20)):
        assert dump.values(metric) == pytest.approx([value] * 2), metric
    assert dump.values("gpu.pcie_rx") == [5 << 20] * 2 and dump.values("gpu.pcie_tx") == [6 << 20] * 2
    assert {t.properties["method"] for t in dump.tracks if t.metric in _gpm.PCIE} == {"GPM"}


@pytest.mark.parametrize("lines", [("gpm 0",), ("gpm 1", "gpm_rates 0"), ("ret nvmlGpmSampleGet 3",)])
def test_pcie_rates_without_gpm_are_those_of_the_driver(start_nvml: Start, lines: tuple[str, ...]) -> None:
    child = start_nvml("gpus 1", *lines, "pcie_rx_kb 7")
    child.open()
    child.read_slow(times=3)
    dump = child.dump()
    assert dump.values("gpu.pcie_rx") == [7000] * 3
    assert {t.properties["method"] for t in dump.tracks if t.metric == "gpu.pcie_rx"} == {"20 ms"}
    assert not [e for e in dump.events if "gpu.pcie_rx" in e.data["metrics"]]


def test_gpm_that_fails_is_told_and_comes_back(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "gpm 1", "gpm_sm 500", "ret nvmlGpmSampleGet 999")
    child.open()
    child.read_slow(times=3)
    [absent] = child.dump().kinds("field_absent")
    assert "gpu.sm_active" in absent.data["metrics"]
    child.plan.set("gpus 1", "gpm 1", "gpm_sm 500")
    child.read_slow(times=200)
    dump = child.dump()
    assert dump.kinds("field_back") and set(dump.values("gpu.sm_active")) == {0.5}


@pytest.mark.parametrize("value", [float("nan"), -1.0, 1e9])
def test_what_is_no_share_is_missing(value: float) -> None:
    class Asked:
        def __init__(self) -> None:
            self.metrics = [type("Metric", (), {"nvmlReturn": 0, "value": 50.0})() for _ in _gpm.METRICS]

    class Nvml:
        NVML_GPM_METRICS_GET_VERSION = 1
        c_nvmlGpmMetricsGet_t = Asked

        def __getattr__(self, name: str) -> int:
            return 1

        def nvmlGpmMetricsGet(self, asked: Asked) -> None:
            asked.metrics[0].value = value
            asked.metrics[1].nvmlReturn = 3

    counters = [_gpm.Counter("SM_UTIL", _gpm.PERCENT, 1.1)] * 4
    first, *rest = _gpm.between(Nvml(), object(), object(), counters)
    assert first is None or not 0 <= first <= counters[0].highest
    assert rest == [None, 0.5, 0.5]
    pcie = _gpm.PCIE["gpu.pcie_rx"]
    assert pcie.of(3.0) == 3 << 20 and (pcie.of(1e9) or 0) > pcie.highest


@pytest.mark.parametrize("line", ["ret nvmlGpmMetricsGet 999", "ret nvmlGpmSampleGet 999"])
def test_a_reading_that_fails_for_hours_gives_its_samples_back(start_nvml: Start, line: str) -> None:
    child = start_nvml("gpus 1", "gpm_sm 500", line)  # the stand-in ends its process where too many are kept
    child.open()
    child.read_slow(times=200, step_s=61)
    child.plan.set("gpus 1", "gpm_sm 500")
    child.read_slow(times=3, step_s=61)
    assert set(child.dump().values("gpu.sm_active")) == {0.5}
