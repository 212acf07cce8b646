"""How a GPU and its links are: memory errors, replaced rows, XIDs, the PCIe link now, NVLinks that are up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._fields import (
    PCIE_GENERATION_BOUND,
    PCIE_WIDTH_BOUND,
    Field,
    Implausible,
    Values,
    Way,
)
from profiler.sources._gpu import Gpu
from profiler.sources._library import TIMEOUT, code_of
from profiler.sources._links import MAX_LINKS, links_up
from profiler.sources._readings import MAX_EVENTS, Reading, readings
from profiler.sources._relay import Job

COUNT_BOUND = 1e9  # errors, rows: more is no count
XID_BOUND = 9999  # NVIDIA's list ends below 200
VOLATILE_ECC, CORRECTED, UNCORRECTED, XID_EVENTS = 0, 0, 1, 8  # NVML's enumerations
XIDS = {
    13: "a kernel of the program failed", 31: "a kernel of the program used memory that is not its own",
    43: "a program's work was stopped", 45: "a program's work was cut off",
    48: "memory error that cannot be corrected", 63: "a row of memory was replaced",
    64: "a row of memory could not be replaced", 74: "NVLink error", 79: "the GPU fell off the bus",
    94: "memory error, confined to one program", 95: "memory error, not confined",
    119: "the GPU's own processor does not answer", 120: "the GPU's own processor failed",
}  # fmt: skip


def _ecc(nvml: Any, handle: Any) -> Callable[[], Values]:
    get = nvml.nvmlDeviceGetTotalEccErrors
    return lambda: (get(handle, CORRECTED, VOLATILE_ECC), get(handle, UNCORRECTED, VOLATILE_ECC))


def _rows(nvml: Any, handle: Any) -> Callable[[], Values]:
    def read() -> Values:
        corrected, uncorrected, pending, failed = nvml.nvmlDeviceGetRemappedRows(handle)
        return corrected + uncorrected, pending, failed

    return read


def _pcie(nvml: Any, handle: Any) -> Callable[[], Values]:
    generation, width = nvml.nvmlDeviceGetCurrPcieLinkGeneration, nvml.nvmlDeviceGetCurrPcieLinkWidth
    return lambda: (generation(handle), width(handle))


def _nvlinks(nvml: Any, handle: Any) -> Callable[[], Values]:
    return lambda: (len(links_up(nvml, handle)),)


@dataclass(frozen=True, slots=True)
class Watch:
    """A metric of a field whose changes are told. `first`: what it is compared with at the start, or None."""

    metric: str
    kind: str
    severity: str
    text: str  # {n}: by how much
    first: float | None = None
    falls: bool = False


LINK = Field("PCIe link", ("gpu.pcie_gen", "gpu.pcie_width"), (Way(_pcie),),
             (PCIE_GENERATION_BOUND, PCIE_WIDTH_BOUND), lowest=1)
COUNTS = (
    (Field("memory errors (ECC)", ("gpu.ecc_corrected", "gpu.ecc_uncorrected"), (Way(_ecc),),
           highest=COUNT_BOUND),
     (Watch("gpu.ecc_corrected", "ecc", "info", "corrected memory errors: {n}"),
      Watch("gpu.ecc_uncorrected", "ecc", "error", "memory errors that cannot be corrected: {n}"))),
    (Field("replaced rows of memory", ("gpu.rows_replaced", "gpu.rows_pending", "gpu.rows_failed"),
           (Way(_rows),), highest=COUNT_BOUND),
     (Watch("gpu.rows_replaced", "rows", "warning", "rows of memory that were replaced: {n}"),
      Watch("gpu.rows_pending", "rows", "warning", "rows of memory wait for a reset to be replaced", 0.0),
      Watch("gpu.rows_failed", "rows", "error", "rows of memory could not be replaced", 0.0))),
    (Field("NVLinks", ("gpu.nvlinks",), (Way(_nvlinks),), highest=MAX_LINKS),
     (Watch("gpu.nvlinks", "nvlink", "warning", "NVLinks that went down: {n}", falls=True),)),
)  # fmt: skip


class Counts:
    """A field of one GPU whose changes are events. Counts are since the driver was loaded."""

    def __init__(self, gpu: Gpu, field: Field, watches: tuple[Watch, ...]) -> None:
        self._gpu = gpu
        self._watches = watches
        self._way = field.ways[0]
        self._last: dict[str, float | None] = {watch.metric: watch.first for watch in watches}
        self._told = 0
        self._now: dict[str, float | None] = {}
        self._reading = Reading(gpu, Field(field.title, field.metrics, (Way(self._bind),), field.highest))

    def read(self, sink: Sink, clock: Clock) -> None:
        self._now = {}
        self._reading.read(sink, clock)
        for watch in self._watches:
            now, last = self._now.get(watch.metric), self._last[watch.metric]
            if now is None or not 0 <= now <= COUNT_BOUND:
                continue
            # A count that falls and comes back is no new error.
            self._last[watch.metric] = now if last is None or watch.falls else max(now, last)
            change = 0.0 if last is None else last - now if watch.falls else now - last
            if change > 0 and self._told < MAX_EVENTS:
                self._told += 1
                sink.event(clock.now_ns(), watch.kind, watch.severity,
                           f"GPU {self._gpu.index} ({self._gpu.name}): {watch.text.format(n=round(change))}",
                           device=self._gpu.id, data={"metric": watch.metric, "now": now, "before": last})

    def stuck(self, sink: Sink, clock: Clock) -> None:
        self._reading.stuck(sink, clock)

    def _bind(self, nvml: Any, handle: Any) -> Callable[[], Values]:
        call = self._way.bind(nvml, handle)

        def read() -> Values:
            values = call()
            self._now = dict(zip(self._reading.field.metrics, values, strict=True))
            return values

        return read


class Xids:
    """The driver's errors (XID) of one GPU, each an event; the samples are their numbers."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._found: list[int] = []
        self._events: Any = None
        self._told = 0
        self._reading = Reading(gpu, Field("XIDs", ("gpu.xid",), (Way(self._bind),), XID_BOUND, lowest=1))

    def read(self, sink: Sink, clock: Clock) -> None:
        self._found = []
        self._reading.read(sink, clock)
        for xid in self._found:
            if self._told < MAX_EVENTS:
                self._told += 1
                what = XIDS.get(xid, "see NVIDIA's list of XIDs")
                sink.event(clock.now_ns(), "xid", "error",
                           f"GPU {self._gpu.index} ({self._gpu.name}): XID {xid}, {what}",
                           device=self._gpu.id, data={"xid": xid})

    def stuck(self, sink: Sink, clock: Clock) -> None:
        self._reading.stuck(sink, clock)

    def _bind(self, nvml: Any, handle: Any) -> Callable[[], Values]:
        if self._events is not None:  # of the handle before: each holds memory of the driver
            with suppress(Exception):
                nvml.nvmlEventSetFree(self._events)
            self._events = None
        events = self._events = nvml.nvmlEventSetCreate()
        try:
            nvml.nvmlDeviceRegisterEvents(handle, XID_EVENTS, events)
        except Exception:
            with suppress(Exception):
                nvml.nvmlEventSetFree(events)
            self._events = None
            raise

        def read() -> Values:
            for _ in range(MAX_EVENTS):  # a flood goes on at the next tick
                try:
                    told = nvml.nvmlEventSetWait_v2(events, 0)
                except Exception as error:
                    if code_of(error) != TIMEOUT:  # which says that there is none
                        raise
                    break
                xid = int(told.eventData)
                if told.eventType != XID_EVENTS or not 0 < xid <= XID_BOUND:
                    raise Implausible(xid, f"{xid} is no XID")
                self._found.append(xid)
            return (float(self._found[-1]) if self._found else None,)

        return read


def health(gpus: Sequence[Gpu]) -> list[Job]:
    """What is read of the health of each GPU, about once a second."""
    return [*readings(gpus, (LINK,)), *(Counts(gpu, *one) for gpu in gpus for one in COUNTS),
            *(Xids(gpu) for gpu in gpus)]
