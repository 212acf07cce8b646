"""What the sources of every vendor's GPUs share: one reads at each tick, one what takes its time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._gpu import Gpu
from profiler.sources._library import Library
from profiler.sources._relay import Relay
from profiler.sources.tree import TargetTree


class FastSource:
    """All GPUs of a vendor, every field on its own. Its library is loaded in `open`, not before."""

    interval_ns: int | None = None

    def __init__(self, library: Library) -> None:
        self.library = library
        self.gpus: Sequence[Gpu] = ()
        self.opened = threading.Event()  # set when `gpus` holds all there are
        self._hung = False  # a call of the opening has not returned
        self._relay = Relay((), 0.0)

    def read(self, sink: Sink, clock: Clock) -> None:
        self._relay.read(sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        if self._relay.close() and self.gpus:
            self._leave()

    def _leave(self) -> None:
        if not self._hung:  # nothing is shut down under a call
            self.library.leave()


S = TypeVar("S", bound=FastSource)


class SlowSource(Generic[S]):
    """Reads the GPUs of another source, in its own thread, so that it holds up none of the fast fields.

    With a `target`, processes of its tree and those of others are told apart.
    """

    interval_ns: int | None = 1_000_000_000

    def __init__(self, fast: S, target: TargetTree | None = None) -> None:
        self._fast = fast
        self._target = target
        self._relay: Relay | None = None

    def open(self, sink: Sink, clock: Clock) -> None:
        pass  # the GPUs are found in the other source's thread

    def read(self, sink: Sink, clock: Clock) -> None:
        if self._relay is None:
            if not self._fast.opened.is_set() or self._fast.library.start() is not None:
                return
            self._relay = self._begin()
        self._relay.read(sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        if self._relay is not None and self._relay.close():
            self._fast.library.leave()

    def _begin(self) -> Relay:
        """All that is read of the GPUs, which are known by now."""
        raise NotImplementedError


def add_devices(gpus: Iterable[Gpu], sink: Sink) -> None:
    """Make them devices of the run, each with its id there."""
    for gpu in gpus:
        gpu.id = sink.add_device(gpu.uuid, gpu.index, gpu.name, memory_total=gpu.memory_total,
                                 properties=gpu.properties)


def tell_shown(gpus: Iterable[Gpu], shown: Sequence[str] | None) -> None:
    """Put torch's number of each device in `shown` (UUIDs in its order) into its properties; of others that
    it is hidden. None: it cannot be told."""
    if shown is None:
        return
    for gpu in gpus:
        gpu.properties["cuda_visible"] = gpu.uuid in shown
        if gpu.uuid in shown:
            gpu.properties["cuda_index"] = shown.index(gpu.uuid)
