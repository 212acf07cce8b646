"""One GPU as NVML knows it: its handle, identity and the facts that do not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import (
    CLOCK_BOUND,
    CLOCK_MEM,
    CLOCK_SM,
    DEFAULT_POWER_BOUND,
    HIGHEST_POWER_LIMIT,
    MEMORY_BOUND,
    PCIE_GENERATION_BOUND,
    PCIE_WIDTH_BOUND,
    SHARED_MEMORY,
)
from profiler.sources._library import NOT_SUPPORTED, Library, Missing, code_of, reason
from profiler.sources._links import BUS_ID, peers

MOST = 1024  # GPUs of a machine; a driver that counts more counts none
RETRY_NS = 60_000_000_000  # after a lasting failure, or for a lost device


class Gpu:
    """A device of this machine. It may be read by several threads, each for other fields.

    `binding` grows with each new handle: calls bound to an earlier one are void.
    `lost` says why the device does not answer; None while it does.
    """

    def __init__(self, library: Library, index: int, handle: Any = None) -> None:
        nvml = library.nvml
        self.library = library
        self.index = index
        self.id = 0  # in the run
        self.epoch = library.epoch
        self.binding = 0
        self.handle: Any = nvml.nvmlDeviceGetHandleByIndex(index) if handle is None else handle
        self.uuid = self._uuid(index, self.handle)
        self.by_index = self.uuid == _no_uuid(index)  # a new handle is known by the index alone
        self.name = text_of(nvml.nvmlDeviceGetName, self.handle) or f"GPU {index}"
        self.lost: str | None = None
        self._retry_ns = 0
        self._lock = threading.Lock()
        self.properties = self._properties()
        self.memory_total, self.unified = self._memory()
        if self.unified:
            self.properties["unified_memory"] = True

    def ready(self, sink: Sink, clock: Clock) -> bool:
        """Whether it can be asked now. A lost device, and a library started anew, need a new handle."""
        if self.lost is None and self.epoch == self.library.epoch:
            return True
        with self._lock:
            if self.lost is not None and clock.now_ns() < self._retry_ns:
                return False
            try:
                self._renew()
            except Exception as error:
                self._lose(reason(error), sink, clock)
                return False
            if self.lost is not None:
                self.lost = None
                self._tell(sink, clock, "device_back", "info", "answers again")
            return True

    def lose(self, why: str, sink: Sink, clock: Clock) -> None:
        """The device does not answer any more; the others go on."""
        with self._lock:
            self._lose(why, sink, clock)

    def _lose(self, why: str, sink: Sink, clock: Clock) -> None:
        self._retry_ns = clock.now_ns() + RETRY_NS
        if self.lost is None:
            self.lost = why
            self._tell(sink, clock, "device_lost", "error", f"does not answer: {why}")

    def _tell(self, sink: Sink, clock: Clock, kind: str, severity: str, text: str) -> None:
        sink.event(clock.now_ns(), kind, severity, f"{self.title} ({self.name}) {text}", device=self.id)

    def _renew(self) -> None:
        """Take a new handle. The index may be another device's by now, the UUID tells."""
        epoch = self.library.epoch
        for handle in self._own() if self.by_index else self._handles():
            if self.by_index or self._uuid(self.index, handle) == self.uuid:
                self.handle, self.epoch = handle, epoch
                self.binding += 1
                return
        raise Missing("the driver does not show it any more")

    def _handles(self) -> Iterator[Any]:
        """Of every device that answers: this one may be under another number, and its own be nobody's."""
        return handles(self.library.nvml, (self.index,))

    def _own(self) -> list[Any]:
        """The handle of this one's index."""
        return [self.library.nvml.nvmlDeviceGetHandleByIndex(self.index)]

    def _uuid(self, index: int, handle: Any) -> str:
        """Made of the index where the driver has none, or only bytes that are no text."""
        told = text_of(self.library.nvml.nvmlDeviceGetUUID, handle)
        return _no_uuid(index) if not told or "\ufffd" in told else told

    @property
    def title(self) -> str:
        """What events call it."""
        return f"GPU {self.index}"

    @property
    def power_bound(self) -> float:
        """W above which a reading of power is none."""
        limit = self.properties.get("power_limit_w")
        return 3 * limit if limit else DEFAULT_POWER_BOUND

    def _properties(self) -> dict[str, Any]:
        nvml, handle = self.library.nvml, self.handle
        found: dict[str, Any] = {
            "power_limit_w": first(HIGHEST_POWER_LIMIT,
                                   lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
                                   lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000),
            "power_limit_default_w": first(
                HIGHEST_POWER_LIMIT, lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000),
            "app_clock_sm": first(
                CLOCK_BOUND, lambda: nvml.nvmlDeviceGetApplicationsClock(handle, CLOCK_SM)),
            "max_clock_sm": first(CLOCK_BOUND, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, CLOCK_SM)),
            "max_clock_mem": first(CLOCK_BOUND, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, CLOCK_MEM)),
            "pcie_gen": first(
                PCIE_GENERATION_BOUND, lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
            "pcie_width": first(PCIE_WIDTH_BOUND, lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
            "pcie_gen_card": first(
                PCIE_GENERATION_BOUND, lambda: nvml.nvmlDeviceGetGpuMaxPcieLinkGeneration(handle)),
            "pcie_gen_now": first(
                PCIE_GENERATION_BOUND, lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
            "pcie_width_now": first(PCIE_WIDTH_BOUND, lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
            "pci_bus_id": bus_id(lambda: nvml.nvmlDeviceGetPciInfo_v3(handle).busId),
            "nvlink_peers": peers(nvml, handle),
            "compute_capability": capability(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle)),
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}

    def _memory(self) -> tuple[int | None, bool]:
        """(total in B, whether the memory is the host's)."""
        nvml, none = self.library.nvml, 0
        for arguments in ({"version": getattr(nvml, "nvmlMemory_v2", None)}, {}):
            try:
                total = int(nvml.nvmlDeviceGetMemoryInfo(self.handle, **arguments).total)
                if 0 < total <= MEMORY_BOUND:
                    return total, False
                raise Missing(SHARED_MEMORY if not total else "the total cannot be")
            except Exception as error:
                none += str(error) == SHARED_MEMORY or code_of(error) == NOT_SUPPORTED
        return None, none == 2


def _no_uuid(index: int) -> str:
    return f"GPU-index-{index}"


def handles(nvml: Any, first: Iterable[int] = ()) -> Iterator[Any]:
    """Of the driver's devices, in order after `first`, without those that do not answer."""
    for index in (*first, *range(min(nvml.nvmlDeviceGetCount(), MOST))):
        with suppress(Exception):
            yield nvml.nvmlDeviceGetHandleByIndex(index)


def text_of(call: Callable[..., Any], *arguments: Any) -> str:
    """A text of the driver, whatever bytes it is made of; empty when there is none."""
    try:
        value = call(*arguments)
    except UnicodeDecodeError:
        # The binding decodes in a wrapper; below it are the bytes.
        try:
            value = call.__wrapped__(*arguments)  # type: ignore[attr-defined]
        except Exception:
            return ""
    except Exception:
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return "".join(c for c in str(value) if c.isprintable()).strip()


def bus_id(call: Callable[[], Any]) -> str | None:
    told = text_of(call)
    return told if BUS_ID.fullmatch(told) else None


def capability(call: Callable[[], tuple[int, int]]) -> str | None:
    try:
        major, minor = call()
    except Exception:
        return None
    return f"{major}.{minor}" if 0 < major < 100 and 0 <= minor < 100 else None


def first(highest: float, *calls: Callable[[], Any]) -> Any:
    """The first answer that can be: above zero, up to `highest`. None when there is none."""
    for call in calls:
        with suppress(Exception):
            value = call()
            if 0 < value <= highest:
                return value
    return None
