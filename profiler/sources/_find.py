"""The GPUs of this machine, and the slices of those that are split. One that hangs holds up no other."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from profiler.sources._gpu import MOST, Gpu
from profiler.sources._library import Library, reason
from profiler.sources._mig import Slice, slices_of

PATIENCE_S = 5.0  # a driver that has slept takes seconds to wake its cards


@dataclass
class Found:
    """`failures`: a line for each GPU that does not answer. `hung`: a call has not returned."""

    gpus: list[Gpu] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    hung: bool = False

    def wrong(self, none: tuple[str, str, str]) -> tuple[str, str, str] | None:
        """None where a GPU answers; else (cause, reason, hint), which is `none` where there is no GPU."""
        if self.gpus:
            return None
        return ("unknown", self.failures[0], none[2]) if self.failures else none


class _Opening:
    """One GPU in a thread of its own."""

    def __init__(self, library: Library, index: int, kind: type[Gpu]) -> None:
        self.index = index
        self._kind = kind
        self.told: tuple[Gpu, list[Slice]] | str | None = None
        self._library = library
        self.thread = threading.Thread(target=self._open, name=f"open-gpu-{index}", daemon=True)

    def _open(self) -> None:
        try:
            gpu = self._kind(self._library, self.index)
            self.told = gpu, slices_of(gpu)
        except Exception as error:
            self.told = reason(error)


def find_gpus(library: Library, kind: type[Gpu] = Gpu, vendor: str = "NVIDIA") -> Found:
    """Ask all at once. Never raises."""
    found = Found()
    try:
        count = library.nvml.nvmlDeviceGetCount()
    except Exception as error:
        found.failures.append(f"The {vendor} driver does not count its GPUs: {reason(error)}")
        return found
    if not 0 <= count <= MOST:
        found.failures.append(f"The {vendor} driver tells of {count} GPUs, which cannot be")
        return found
    opening = [_Opening(library, index, kind) for index in range(count)]
    for one in opening:
        one.thread.start()
    deadline = time.monotonic() + PATIENCE_S
    for one in opening:
        one.thread.join(max(0.0, deadline - time.monotonic()))
        told = one.told
        if told is None or isinstance(told, str):
            found.hung |= told is None
            found.failures.append(f"GPU {one.index} does not answer: {told or 'its driver does not return'}")
        else:
            found.gpus.append(told[0])
            found.slices += told[1]
    _tell_apart([*found.gpus, *found.slices])
    return found


def _tell_apart(gpus: list[Gpu]) -> None:
    """Devices of one UUID, as some virtual machines have them, get a number and are known by their index."""
    of: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        of.setdefault(gpu.uuid, []).append(gpu)
    for uuid, twins in of.items():
        for number, gpu in enumerate(twins, 1):
            gpu.by_index |= len(twins) > 1
            gpu.uuid = uuid if number == 1 else f"{uuid} ({number})"
