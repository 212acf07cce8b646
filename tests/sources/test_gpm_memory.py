"""A GPU that is lost and comes back: the driver has the memory of samples and sets of events back."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

from profiler.sources._gpm import GPM
from profiler.sources._health import Xids


class Nvml:
    """As far as GPM asks it."""

    NVML_GPM_METRICS_GET_VERSION = 1

    def __init__(self) -> None:
        self.held = 0

    def __getattr__(self, name: str) -> Any:
        return 1  # numbers of metrics

    def nvmlGpmQueryDeviceSupport(self, handle: Any) -> Any:
        return SimpleNamespace(isSupportedDevice=1)

    def nvmlGpmSampleAlloc(self) -> object:
        self.held += 1
        return object()

    def nvmlGpmSampleGet(self, handle: Any, sample: object) -> None:
        pass

    def nvmlGpmSampleFree(self, sample: object) -> None:
        self.held -= 1

    def c_nvmlGpmMetricsGet_t(self) -> Any:
        metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=50.0) for _ in range(40)]
        return SimpleNamespace(version=0, numMetrics=0, sample1=None, sample2=None, metrics=metrics)

    def nvmlGpmMetricsGet(self, asked: Any) -> None:
        pass


def test_samples_go_back_when_a_device_is_bound_anew() -> None:
    nvml: Any = Nvml()
    for _ in range(5):  # each with a collection, which is slow where torch is loaded
        call = GPM.ways[0].bind(nvml, object())
        for _ in range(3):
            call()
        assert nvml.held == 1
        del call
        gc.collect()
    assert nvml.held == 0


def test_event_sets_go_back_when_a_device_is_bound_anew() -> None:
    held: list[object] = []

    def create() -> object:
        held.append(object())
        return held[-1]

    nvml = SimpleNamespace(nvmlEventSetCreate=create, nvmlEventSetFree=held.remove,
                           nvmlDeviceRegisterEvents=lambda *_: None)
    gpu: Any = SimpleNamespace(id=1, index=0, binding=0, power_bound=700.0)
    xids = Xids(gpu)
    for _ in range(100):
        xids._bind(nvml, object())
        assert len(held) == 1
