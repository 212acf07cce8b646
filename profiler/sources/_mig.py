"""MIG: the slices of a card, each a device of its own. Power and the like are the whole card's alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from profiler.sources._fields import FAST, MEMORY
from profiler.sources._gpu import Gpu, handles
from profiler.sources._library import Library

MOST = 64  # slices of a card
PARENT_ONLY = tuple(metric for field in FAST if field is not MEMORY for metric in field.metrics)


class Slice(Gpu):
    """A MIG device. Its index is its card's; only its memory, activity and processes are its own."""

    def __init__(self, library: Library, parent: Gpu, handle: Any) -> None:
        self.parent = parent
        super().__init__(library, parent.index, handle)

    def _handles(self) -> Iterator[Any]:
        nvml = self.library.nvml
        for card in handles(nvml):
            yield from slots(nvml, card)

    def _own(self) -> list[Any]:
        """The index is the card's: without its UUID a slice is not found again."""
        return []

    def _properties(self) -> dict[str, Any]:
        found: dict[str, Any] = {"mig_parent": self.parent.uuid, "parent_only": list(PARENT_ONLY)}
        for name, call in (("gpu_instance", "nvmlDeviceGetGpuInstanceId"),
                           ("compute_instance", "nvmlDeviceGetComputeInstanceId")):
            with suppress(Exception):
                if (number := int(getattr(self.library.nvml, call)(self.handle))) < MOST:
                    found[name] = number
        if "compute_capability" in self.parent.properties:
            found["compute_capability"] = self.parent.properties["compute_capability"]
        return found

    @property
    def title(self) -> str:
        of = self.properties
        return f"GPU {self.index} slice {of.get('gpu_instance', '?')}/{of.get('compute_instance', '?')}"

    @property
    def older_name(self) -> str:
        """As drivers before 470 named it, which CUDA still understands."""
        of = self.properties
        return f"MIG-{self.parent.uuid}/{of.get('gpu_instance')}/{of.get('compute_instance')}"


def slots(nvml: Any, handle: Any) -> Iterator[Any]:
    """Handles of a card's slices; none where it has no MIG, or has it off."""
    try:
        on = nvml.nvmlDeviceGetMigMode(handle)[0] == 1
        count = min(nvml.nvmlDeviceGetMaxMigDeviceCount(handle), MOST) if on else 0
    except Exception:  # cards without MIG answer NotSupported
        return
    for slot in range(count):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
        except Exception:  # NotFound: nothing in this slot
            continue


def slices_of(gpu: Gpu) -> list[Slice]:
    """The slices of a card in order, without those that do not answer."""
    found = []
    for handle in slots(gpu.library.nvml, gpu.handle):
        with suppress(Exception):
            found.append(Slice(gpu.library, gpu, handle))
    return found
