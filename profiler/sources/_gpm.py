"""GPM: what a GPU does, by its own counters between two samples. Hopper and newer; needs no root."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from profiler.sources._fields import PCIE_BOUND, PCIE_RX_NOW, PCIE_TX_NOW, Bind, Field, Values, Way
from profiler.sources._library import Missing

LACKS = "this GPU does not count it (Hopper and newer do)"
NVLINK_BOUND = 1e14  # B/s


@dataclass(frozen=True, slots=True)
class Counter:
    """One of NVML's metrics: its name there, the factor to our unit, and what is more than can be."""

    name: str
    scale: float
    bound: float

    def of(self, value: float) -> float | None:
        """In our unit; None for NaN (nothing ran). Rounding makes 1.001 of 1."""
        told = value * self.scale
        return None if math.isnan(told) else 1.0 if self.scale == PERCENT and 1 < told < self.bound else told

    @property
    def highest(self) -> float:
        """A larger value, in our unit, cannot be."""
        return 1.0 if self.scale == PERCENT else self.bound


PERCENT, MIB = 0.01, float(1 << 20)


def _share(name: str) -> Counter:
    return Counter(name, PERCENT, 1.1)


METRICS = {
    "gpu.sm_active": _share("SM_UTIL"), "gpu.sm_occupancy": _share("SM_OCCUPANCY"),
    "gpu.tensor_active": _share("ANY_TENSOR_UTIL"), "gpu.dram_active": _share("DRAM_BW_UTIL"),
    "gpu.fp64_active": _share("FP64_UTIL"), "gpu.fp32_active": _share("FP32_UTIL"),
    "gpu.fp16_active": _share("FP16_UTIL"),
    "gpu.nvlink_rx": Counter("NVLINK_TOTAL_RX_PER_SEC", MIB, NVLINK_BOUND),
    "gpu.nvlink_tx": Counter("NVLINK_TOTAL_TX_PER_SEC", MIB, NVLINK_BOUND),
}  # fmt: skip
PCIE = {"gpu.pcie_rx": Counter("PCIE_RX_PER_SEC", MIB, PCIE_BOUND),
        "gpu.pcie_tx": Counter("PCIE_TX_PER_SEC", MIB, PCIE_BOUND)}  # fmt: skip


def _ask(nvml: Any, before: Any, after: Any, counters: Sequence[Counter]) -> list[Any]:
    asked = nvml.c_nvmlGpmMetricsGet_t()
    asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
    asked.numMetrics = len(counters)
    asked.sample1, asked.sample2 = before, after
    for place, counter in enumerate(counters):
        asked.metrics[place].metricId = getattr(nvml, f"NVML_GPM_METRIC_{counter.name}")
    nvml.nvmlGpmMetricsGet(asked)
    return [asked.metrics[place] for place in range(len(counters))]


def between(nvml: Any, before: Any, after: Any, counters: Sequence[Counter]) -> Values:
    """Averages between two samples, in our units; None for what this device does not count.

    Missing when it counts none of them.
    """
    told = _ask(nvml, before, after, counters)
    if all(metric.nvmlReturn for metric in told):
        raise Missing(LACKS)
    return tuple(counter.of(metric.value) if metric.nvmlReturn == 0 else None
                 for metric, counter in zip(told, counters, strict=True))


class _Kept(list[Any]):
    """The sample before. Its memory is the driver's, which has it back when the device is bound anew."""

    def __init__(self, nvml: Any) -> None:
        super().__init__()
        self._nvml = nvml

    def __del__(self) -> None:
        _free(self._nvml, self)


def _binding(counters: Mapping[str, Counter], checked: bool = False, mig: bool = False) -> Bind:
    """With `checked` a device that answers none of the counters is no way to read them. `mig`: of a slice."""
    asked = tuple(counters.values())

    def bind(nvml: Any, handle: Any) -> Callable[[], Values]:
        card = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if mig else handle
        instance = nvml.nvmlDeviceGetGpuInstanceId(handle) if mig else None
        if not nvml.nvmlGpmQueryDeviceSupport(card).isSupportedDevice:
            raise Missing(LACKS)
        kept = _Kept(nvml)

        def read() -> Values:
            sample = _sample(nvml, card, instance)
            before = kept.pop() if kept else None
            kept.append(sample)
            if before is None:
                return (None,) * len(asked)
            try:
                return between(nvml, before, sample, asked)
            except Exception:
                _free(nvml, kept)  # the reading begins anew, with others
                raise
            finally:
                nvml.nvmlGpmSampleFree(before)

        if checked:
            try:
                read()
                read()
            finally:
                _free(nvml, kept)  # an interval between two calls is none to average over
        return read

    return bind


def _free(nvml: Any, kept: list[Any]) -> None:
    while kept:
        with suppress(Exception):
            nvml.nvmlGpmSampleFree(kept.pop())


def _sample(nvml: Any, card: Any, instance: int | None) -> Any:
    """Of a card, or of one instance on it."""
    sample = nvml.nvmlGpmSampleAlloc()
    try:
        if instance is None:
            nvml.nvmlGpmSampleGet(card, sample)
        else:
            nvml.nvmlGpmMigSampleGet(card, instance, sample)
    except Exception:
        _free(nvml, [sample])
        raise
    return sample


def _field(counters: Mapping[str, Counter], mig: bool = False) -> Field:
    return Field("GPM", tuple(counters), (Way(_binding(counters, mig=mig), {"method": "GPM"}),),
                 tuple(counter.highest for counter in counters.values()))


GPM = _field(METRICS)
# Links are the card's.
OF_SLICE = {name: counter for name, counter in METRICS.items() if counter.scale == PERCENT}
GPM_OF_SLICE = _field(OF_SLICE, mig=True)
# Without GPM the driver measures each direction for about 20 ms before it answers.
RATES = tuple(
    Field(title, (metric,), (Way(_binding({metric: PCIE[metric]}, checked=True), {"method": "GPM"}), way),
          highest=PCIE_BOUND)
    for title, metric, way in (("PCIe rate to the GPU", "gpu.pcie_rx", PCIE_RX_NOW),
                               ("PCIe rate from the GPU", "gpu.pcie_tx", PCIE_TX_NOW)))  # fmt: skip
