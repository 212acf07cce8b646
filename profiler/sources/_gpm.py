"""GPM: how much of a GPU works, by its own counters between two samples. Hopper and newer; needs no root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from profiler.sources._fields import Field, Values, Way
from profiler.sources._library import Missing

# Metric of ours -> name in NVML. All in per cent.
METRICS = {"gpu.sm_active": "SM_UTIL", "gpu.sm_occupancy": "SM_OCCUPANCY",
           "gpu.tensor_active": "ANY_TENSOR_UTIL", "gpu.dram_active": "DRAM_BW_UTIL"}


def _bind(nvml: Any, handle: Any) -> Callable[[], Values]:
    if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
        raise Missing("this GPU does not count it (Hopper and newer do)")
    kept: list[Any] = []  # the sample before, whose memory is the driver's

    def read() -> Values:
        sample = nvml.nvmlGpmSampleAlloc()
        try:
            nvml.nvmlGpmSampleGet(handle, sample)
        except Exception:
            nvml.nvmlGpmSampleFree(sample)
            raise
        before = kept.pop() if kept else None
        kept.append(sample)
        if before is None:
            return (None,) * len(METRICS)
        try:
            return between(nvml, before, sample)
        finally:
            nvml.nvmlGpmSampleFree(before)

    return read


def between(nvml: Any, before: Any, after: Any) -> Values:
    """Averages between two samples, in [0, 1]; None for what this device does not count."""
    asked = nvml.c_nvmlGpmMetricsGet_t()
    asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
    asked.numMetrics = len(METRICS)
    asked.sample1, asked.sample2 = before, after
    for place, name in enumerate(METRICS.values()):
        asked.metrics[place].metricId = getattr(nvml, f"NVML_GPM_METRIC_{name}")
    nvml.nvmlGpmMetricsGet(asked)
    told = (asked.metrics[place] for place in range(len(METRICS)))
    # NaN where nothing ran; a little above 100 by rounding.
    return tuple(min(metric.value / 100, 1.0) if metric.nvmlReturn == 0 and 0 <= metric.value < 110 else None
                 for metric in told)


GPM = Field("GPM", tuple(METRICS), (Way(_bind, {"method": "GPM"}),), highest=1.0)
