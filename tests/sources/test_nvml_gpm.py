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
    child.read_slow(times=60)  # more than the stand-in would lend samples
    dump = child.dump()
    assert set(_gpm.METRICS) <= METRICS.keys()
    for metric, share in (("gpu.sm_active", 0.9), ("gpu.sm_occupancy", 0.45), ("gpu.tensor_active", 0.301),
                          ("gpu.dram_active", 1.0)):
        assert dump.values(metric, gpu=1) == pytest.approx([share] * 59)  # the first has none before it
        [track] = [track for track in dump.tracks if track.metric == metric]
        assert track.device == 2 and track.properties == {"method": "GPM"}
    [absent] = dump.kinds("field_absent")
    assert absent.device == 1 and "Hopper" in absent.text


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

    assert _gpm.between(Nvml(), object(), object()) == (None, None, 0.5, 0.5)
