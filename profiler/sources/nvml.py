"""NVIDIA GPUs through NVML: utilization, memory, power, energy, temperature, clocks, throttle reasons."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from profiler.errors import DeviceError
from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import FAST, MEMORY
from profiler.sources._find import find_gpus
from profiler.sources._gpu import Gpu, text_of
from profiler.sources._gpu_processes import use_of
from profiler.sources._library import GOOD, NO_DEVICES, Library, absent
from profiler.sources._mig import Slice
from profiler.sources._readings import readings
from profiler.sources._relay import Relay
from profiler.sources._vendor import FastSource, add_devices, tell_shown
from profiler.visible import Card, resolve

PATIENCE_S = 0.01  # for one call: eight that hang still leave the tick of the default rate whole


class NvmlSource(FastSource):
    """All GPUs, every field on its own. NVML is loaded in `open`, not before.

    The run's meta `gpu` tells {state: ok | absent, cause, reason, hint, driver, cuda_driver, nvml}.
    """

    name = "nvml"

    def __init__(self) -> None:
        super().__init__(Library())
        self.slices: list[Slice] = []  # of MIG

    def open(self, sink: Sink, clock: Clock) -> None:
        """Add the devices. DeviceError when there is no GPU to ask, with what to do about it."""
        wrong = self.library.start()
        if wrong is None:
            found = find_gpus(self.library)
            self._hung = found.hung
            wrong = found.wrong(NO_DEVICES)
            if wrong is not None:
                self._leave()
        if wrong is not None:
            sink.set_meta("gpu", absent(*wrong))
            raise DeviceError(*wrong[1:])
        sink.set_meta("gpu", {**GOOD, **versions(self.library.nvml)})
        for text in found.failures:
            sink.event(clock.now_ns(), "device_absent", "warning", text)
        gpus, slices = found.gpus, found.slices
        tell_visible(gpus, slices, os.environ)
        add_devices((*gpus, *slices), sink)
        self.gpus, self.slices = gpus, slices
        self._relay = Relay([*readings(gpus, FAST), *readings(slices, (MEMORY,))], PATIENCE_S)
        self.opened.set()


def tell_visible(gpus: Sequence[Gpu], slices: Sequence[Slice], environment: Mapping[str, str]) -> None:
    """Put CUDA's number of each device that it shows into its properties; of others that it does not."""
    shown = resolve([Card(gpu.uuid, gpu.name, {s.uuid: s.older_name for s in slices if s.parent is gpu})
                     for gpu in gpus], environment)
    tell_shown((*gpus, *slices), shown)


def versions(nvml: Any) -> dict[str, str | None]:
    """Versions of the driver, of the CUDA it supports, and of NVML."""
    cuda = None
    for name in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
        try:
            number = int(getattr(nvml, name)())
        except Exception:
            continue
        if 1000 <= number < 100_000:
            cuda = f"{number // 1000}.{number % 1000 // 10}"
            break
    return {"driver": text_of(nvml.nvmlSystemGetDriverVersion) or None, "cuda_driver": cuda,
            "nvml": text_of(nvml.nvmlSystemGetNVMLVersion) or None}  # fmt: skip


def describe() -> dict[str, Any]:
    """What NVML tells of this machine now: the meta `gpu` with `devices` added. Never raises.

    Each device has `mig` and `users` too: see use_of.
    """
    library = Library()
    wrong = library.start()
    if wrong is not None:
        return {**absent(*wrong), "devices": []}
    found = find_gpus(library)
    try:
        devices = [{"uuid": g.uuid, "index": g.index, "name": g.name, "memory_total": g.memory_total,
                    **g.properties, **use_of(g)} for g in found.gpus]  # fmt: skip
        wrong = found.wrong(NO_DEVICES)
        state = GOOD if wrong is None else absent(*wrong)
        return {**state, **versions(library.nvml), "devices": devices, "failures": found.failures}
    finally:
        if not found.hung:
            library.leave()
