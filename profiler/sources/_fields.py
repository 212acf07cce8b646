"""What is read of a GPU: one entry a field, with the ways to get it, best first.

A way is bound to a handle once and then called at every tick. It returns one value
a metric, None for one that this way does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from profiler.sources._library import Missing

Values = tuple[float | None, ...]
Bind = Callable[[Any, Any], Callable[[], Values]]  # (pynvml, handle) -> the call

DEFAULT_POWER_BOUND = 2000.0  # W, of a board whose limit is not known
HIGHEST_POWER_LIMIT = 10_000.0  # W; a limit above it is none
SHARED_MEMORY = "the device has no memory of its own (unified memory)"


@dataclass(frozen=True, slots=True)
class Way:
    bind: Bind
    properties: Mapping[str, Any] = field(default_factory=dict)  # of the tracks: how it was measured


@dataclass(frozen=True, slots=True)
class Field:
    """What is below `lowest` or above `highest` (of each metric, or of all) cannot be: see power_bound."""

    title: str
    metrics: tuple[str, ...]
    ways: tuple[Way, ...]
    highest: float | tuple[float, ...] = math.inf
    lowest: float = 0.0

    @property
    def bounds(self) -> tuple[float, ...]:
        return self.highest if isinstance(self.highest, tuple) else (self.highest,) * len(self.metrics)


class Implausible(Exception):
    """An answer that succeeded and cannot be. The text says why; `raw` is what was told."""

    def __init__(self, raw: float, why: str) -> None:
        super().__init__(why)
        self.raw = raw


def _utilization(nvml: Any, handle: Any) -> Callable[[], Values]:
    get = nvml.nvmlDeviceGetUtilizationRates

    def read() -> Values:
        rates = get(handle)
        return rates.gpu / 100, rates.memory / 100

    return read


def _check(total: int, used: int, free: int, reserved: int = 0) -> None:
    """Missing without a total; Implausible where the parts (bytes) cannot be of it."""
    if not total:
        raise Missing(SHARED_MEMORY)
    most = max(used, free, reserved)
    if most > total or total > MEMORY_BOUND:
        raise Implausible(max(most, total), f"{most:.6g} of {total:.6g} bytes cannot be")
    if not used and not free:
        raise Implausible(0, "neither used nor free bytes cannot be")


def memory_v2(nvml: Any, handle: Any) -> Callable[[], Values]:
    get, version = nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2

    def read() -> Values:
        memory = get(handle, version=version)
        used, free, reserved = memory.used, memory.free, memory.reserved  # slow: the binding looks at each
        _check(memory.total, used, free, reserved)
        return used, free, reserved

    return read


def memory_v1(nvml: Any, handle: Any) -> Callable[[], Values]:
    get = nvml.nvmlDeviceGetMemoryInfo

    def read() -> Values:
        memory = get(handle)
        _check(memory.total, memory.used, memory.free)
        return memory.used, memory.free, None

    return read


def _one(name: str, *arguments: int, scale: float = 1.0) -> Bind:
    """A function of one value: its name, arguments after the handle, and factor to our unit."""

    def bind(nvml: Any, handle: Any) -> Callable[[], Values]:
        get = getattr(nvml, name)
        return lambda: (get(handle, *arguments) * scale,)

    return bind


def _per_thousand(name: str) -> Bind:
    def bind(nvml: Any, handle: Any) -> Callable[[], Values]:
        get = getattr(nvml, name)
        return lambda: (get(handle) / 1000,)

    return bind


# Drivers answer with all bits set, with zero or with junk, and call it a success. No device that is on is
# at zero watts, joules, MHz or degrees; far above any device there is:
MEMORY_BOUND, ENERGY_BOUND = 2.0**50, 1e13  # B, J
REASONS_BOUND = 2.0**31 - 1  # a mask whose bits are all set says nothing
TEMPERATURE_BOUND, CLOCK_BOUND, PCIE_BOUND = 250.0, 20_000.0, 1e12  # degrees Celsius, MHz, B/s
PCIE_GENERATION_BOUND, PCIE_WIDTH_BOUND = 10.0, 32.0

TEMPERATURE_GPU, CLOCK_SM, CLOCK_MEM, PCIE_TX, PCIE_RX = 0, 1, 2, 0, 1  # NVML's enumerations

# v1 counts what the driver reserves as used: the two are not the same number.
_MEMORY = (Way(memory_v2, {"version": "v2"}), Way(memory_v1, {"version": "v1"}))
MEMORY = Field("memory", ("gpu.mem_used", "gpu.mem_free", "gpu.mem_reserved"), _MEMORY, MEMORY_BOUND)
FAST = (
    Field("utilization", ("gpu.util", "gpu.mem_util"), (Way(_utilization),), highest=1.0),
    MEMORY,
    Field("power", ("gpu.power",), (Way(_per_thousand("nvmlDeviceGetPowerUsage")),), lowest=0.001),
    Field("energy", ("gpu.energy",),
          (Way(_per_thousand("nvmlDeviceGetTotalEnergyConsumption"), {"method": "counter"}),),
          highest=ENERGY_BOUND, lowest=0.001),
    Field("temperature", ("gpu.temperature",),
          (Way(_one("nvmlDeviceGetTemperature", TEMPERATURE_GPU)),
           Way(_one("nvmlDeviceGetTemperatureV", TEMPERATURE_GPU))), highest=TEMPERATURE_BOUND, lowest=1),
    Field("SM clock", ("gpu.clock_sm",), (Way(_one("nvmlDeviceGetClockInfo", CLOCK_SM)),),
          highest=CLOCK_BOUND, lowest=1),
    Field("memory clock", ("gpu.clock_mem",), (Way(_one("nvmlDeviceGetClockInfo", CLOCK_MEM)),),
          highest=CLOCK_BOUND, lowest=1),
    Field("throttle reasons", ("gpu.throttle",),
          (Way(_one("nvmlDeviceGetCurrentClocksEventReasons")),
           Way(_one("nvmlDeviceGetCurrentClocksThrottleReasons"))), highest=REASONS_BOUND),
)  # fmt: skip

# Each measured for about 20 ms, in which the call does not return. Its KB are taken as 1000 B.
PCIE_RX_NOW = Way(_one("nvmlDeviceGetPcieThroughput", PCIE_RX, scale=1000.0), {"method": "20 ms"})
PCIE_TX_NOW = Way(_one("nvmlDeviceGetPcieThroughput", PCIE_TX, scale=1000.0), {"method": "20 ms"})
