"""The process that reads the GPUs: its sources in threads, what they say into a pipe."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from profiler.model import Sink
from profiler.record.clock import Clock
from profiler.record.ticks import SourceThread
from profiler.record.used import peak_memory
from profiler.sources import Clock as AnyClock
from profiler.sources import Source
from profiler.sources._gpus import gpu_sources
from profiler.sources._library import Missing
from profiler.sources._wire import PipeSink
from profiler.sources.tree import TargetTree

TURN_S = 0.5  # between looks at the threads
ENDS_S = 0.7  # a source that hangs is left behind after that; the recorder waits for a second
PR_SET_PDEATHSIG = 1


def guard() -> int:
    """Make this a process that can crash and be left alone. The descriptor for records.

    It ends with its recorder, hears no keys, leaves no core file, says where it crashed on stderr, and
    what a library prints does not get among the records.
    """
    faulthandler.enable(all_threads=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = os.getppid()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died just before it could be arranged
        os._exit(0)
    fd = os.dup(1)
    os.dup2(2, 1)
    return fd


def leave_out(calls: Sequence[str]) -> None:
    """Have NVML's binding refuse these calls, in which the library crashes: their fields have no values."""
    try:
        import pynvml
    except Exception:  # then nothing calls it either
        return

    def refuse(*_: object, **__: object) -> None:
        raise Missing("the driver's library crashes in it")

    for call in calls:
        setattr(pynvml, call, refuse)


class _Sent:
    """A source whose values leave at the end of each tick."""

    def __init__(self, source: Source, sink: PipeSink) -> None:
        self.name, self.interval_ns = source.name, source.interval_ns
        self._source = source
        self._pipe = sink

    def open(self, sink: Sink, clock: AnyClock) -> None:
        self._source.open(sink, clock)
        _send(self._pipe)

    def read(self, sink: Sink, clock: AnyClock) -> None:
        self._source.read(sink, clock)
        _send(self._pipe, late=True)

    def close(self, sink: Sink, clock: AnyClock) -> None:
        _send(self._pipe)  # before a shutdown that may crash
        self._source.close(sink, clock)


class GpuChild:
    """Reads until standard input ends, or there is nothing to read."""

    def __init__(self, fd: int, clock: Clock, rate_hz: float, target: int | None) -> None:
        self._sink = PipeSink(fd)
        self._clock = clock
        tree = TargetTree(target)
        self._vendors = [[SourceThread(_Sent(source, self._sink), self._sink, clock, rate_hz)
                          for source in sources] for sources in gpu_sources(tree)]
        self._threads = [thread for threads in self._vendors for thread in threads]
        self._told = {thread.name: (0, 0, 0) for thread in self._threads}
        self._stop = threading.Event()

    def run(self) -> None:
        """To the end, which is that of the process."""
        threading.Thread(target=self._listen, name="stdin", daemon=True).start()
        for thread in self._threads:
            thread.start()
        while True:
            stopped = self._stop.wait(TURN_S)
            for thread in self._threads:
                thread.watch()
            self._tell()
            if stopped or all(threads[0].off is not None for threads in self._vendors):
                break
        if not stopped:
            self._sink.say(["done"])
        deadline = time.monotonic() + ENDS_S
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            if not thread.join(deadline - time.monotonic()):
                text = f"the {thread.name} source did not end in time"
                self._sink.event(self._clock.now_ns(), "source_stuck", "warning", text,
                                 data={"source": thread.name})
        self._tell()
        os._exit(0)  # neither threads that hang nor what a library does at the end hold it up

    def _listen(self) -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        self._stop.set()

    def _tell(self) -> None:
        """Ticks since the last time by source, and what this process has used."""
        told = {}
        for thread in self._threads:
            cadence, before = thread.cadence, self._told[thread.name]
            now = self._told[thread.name] = cadence.ticks, cadence.missed, cadence.lateness_sum_ns
            new = (a - b for a, b in zip(now, before, strict=True))
            told[thread.name] = [cadence.interval_ns, *new, cadence.take_recent(), thread.off]
        self._sink.say(["ticks", time.monotonic_ns(), time.process_time_ns(), peak_memory(), told])
        _send(self._sink)


def _send(sink: PipeSink, late: bool = False) -> None:
    try:
        sink.tick_over() if late else sink.flush()
    except OSError:  # the recorder is gone
        os._exit(0)
