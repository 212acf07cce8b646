"""One thread per source, each with its own cadence that does not drift."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from profiler.errors import ProfilerError
from profiler.model import Sink
from profiler.sources import Clock, Source


class Cadence:
    """Ticks at start, start + interval, start + 2 * interval, ... whatever a tick takes.

    A tick that is due while the previous one still runs comes late; ticks that
    are a whole interval late are missed and counted, never made up for.
    Times are ns of any one monotonic clock.
    """

    def __init__(self, interval_ns: int, start_ns: int) -> None:
        self.interval_ns = interval_ns
        self.deadline_ns = start_ns
        self.begun_ns: int | None = None  # the first tick
        self.ticks = 0
        self.missed = 0
        self.lateness_sum_ns = 0
        self.lateness_max_ns = 0
        self.recent_max_ns = 0  # since somebody took it

    def tick(self, now_ns: int) -> None:
        """A tick begins."""
        self.begun_ns = now_ns if self.begun_ns is None else self.begun_ns
        late = max(0, now_ns - self.deadline_ns)
        self.ticks += 1
        self.lateness_sum_ns += late
        self.lateness_max_ns = max(self.lateness_max_ns, late)
        self.recent_max_ns = max(self.recent_max_ns, late)

    def wait_ns(self, now_ns: int) -> int:
        """The tick is over: time to the next one, 0 when it is due already."""
        self.deadline_ns += self.interval_ns
        if now_ns > self.deadline_ns:
            missed = (now_ns - self.deadline_ns) // self.interval_ns
            self.missed += missed
            self.deadline_ns += missed * self.interval_ns
        return max(0, self.deadline_ns - now_ns)

    def take_recent(self) -> int:
        """Largest lateness since the last call, ns."""
        recent, self.recent_max_ns = self.recent_max_ns, 0
        return recent


class SourceThread:
    """Reads one source until stopped. A source that raises is off, with an event that says why.

    Everything of the source happens in this thread, opening and closing too: a
    call that hangs holds up neither another source nor the end of the recording.
    """

    STUCK_NS = 5_000_000_000

    def __init__(self, source: Source, sink: Sink, clock: Clock, rate_hz: float) -> None:
        self.source = source
        self.name = source.name
        self.off: str | None = None
        self._sink = sink
        self._clock = clock
        interval = source.interval_ns if source.interval_ns is not None else round(1e9 / rate_hz)
        self.cadence = Cadence(interval, time.monotonic_ns())
        self._stop = threading.Event()
        self._busy_since_ns: int | None = None
        self._told_stuck = False
        # a daemon: a call that hangs for ever must not keep the recorder alive
        self._thread = threading.Thread(target=self._run, name=f"source-{source.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end. Returns at once."""
        self._stop.set()

    def join(self, timeout_s: float) -> bool:
        """Whether the thread has ended within that time."""
        self._thread.join(max(0.0, timeout_s))
        return not self._thread.is_alive()

    def watch(self) -> None:
        """Say so, once, when a call of the source does not return. Called from the main loop."""
        since = self._busy_since_ns
        stuck = since is not None and time.monotonic_ns() - since > self.STUCK_NS
        if stuck and not self._told_stuck:
            self._event("source_stuck", f"the {self.source.name} source does not answer; its data has a gap")
        self._told_stuck = stuck

    def _event(self, kind: str, text: str) -> None:
        self._sink.event(self._clock.now_ns(), kind, "warning", text, data={"source": self.source.name})

    def _run(self) -> None:
        if self._call(self.source.open):
            self.cadence.deadline_ns = time.monotonic_ns()
            while not self._stop.is_set():
                self.cadence.tick(time.monotonic_ns())
                if not self._call(self.source.read):
                    break
                self._stop.wait(self.cadence.wait_ns(time.monotonic_ns()) / 1e9)
        self._call(self.source.close)

    def _call(self, function: Callable[[Sink, Clock], None]) -> bool:
        self._busy_since_ns = time.monotonic_ns()
        try:
            function(self._sink, self._clock)
        except Exception as error:
            self._switch_off(error)
            return False
        finally:
            self._busy_since_ns = None
        return True

    def _switch_off(self, error: Exception) -> None:
        if self.off is not None:
            return
        known = isinstance(error, ProfilerError)
        self.off = str(error) if known else f"{type(error).__name__}: {error}"
        self._event("source_off", f"the {self.source.name} source is off: {self.off}")
