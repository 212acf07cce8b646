"""What the GPU did at the stage boundaries, by CUDA events on the step's thread and current stream.

Events are recorded where a stage begins and ends, never while a stream captures, asked
with `query()` at later boundaries, and never waited for. The time between the two events
of a stage is its device time.

Device lag needs the host's clock on the device's axis. An event that is found complete
right after it was recorded (the device was idle) completed between two readings of the
host's clock at most 0.2 ms apart: that pins one event, `base`, to the host's clock. From then
on every event narrows the pin, because none completes before it was recorded nor after
it was seen complete; this also follows the drift between the two clocks. A base is
replaced every few seconds, because `elapsed_time` is a 32-bit number of milliseconds.
Until the device was idle once, no lag is told.
"""

import time
from collections import deque

from .hook import Hook
from .stages import BACKWARD, DATA, FORWARD, H2D, OPTIMIZER

NAMES = {DATA: "data", H2D: "h2d", FORWARD: "forward", BACKWARD: "backward", OPTIMIZER: "optimizer"}

_SPANS = 24  # per step; a step with more has no device times
_WAITING = 64  # steps whose events are not complete yet
_PROOF_NS = 200_000
_BASE_NS = 4_000_000_000


class DeviceHook(Hook):
    """`cuda` stands in for torch.cuda in tests."""

    name = "cuda_events"

    def __init__(self, probe, cuda=None, clock=time.monotonic_ns):
        Hook.__init__(self, probe)
        if cuda is None:
            import torch.cuda as cuda
        self.cuda = cuda
        self.clock = clock
        self._pool = []
        self._reset(None)

    def install(self):
        self.loop.device = self

    def remove(self):
        self.loop.device = None
        self._reset(None)

    def _reset(self, device):
        self.current = device
        self.base = self.base_at = None  # an event, and the host's time of its completion
        self.waiting = deque()
        self.index = None  # of the step being recorded; None: leave it out
        self.spans = []  # stage, first event, last event or None, host time of the first

    # On the way through a step

    def step(self, index, now):
        """A step begins; what the one before recorded waits for the device."""
        try:
            if self.index is not None and self.spans and len(self.waiting) < _WAITING:
                self.waiting.append((self.index, self.spans))
            device = self.cuda.current_device()
            if device != self.current:
                self._reset(device)
            self.index, self.spans = index, []
            self._poll()
        except Exception as error:
            self.fail(error)

    def begin(self, stage, now):
        try:
            if self.index is None:
                return
            first = not self.spans
            if len(self.spans) >= _SPANS or self.cuda.is_current_stream_capturing():
                self.index = None
                return
            t0 = self.clock()
            event = self._record()
            self.spans.append([stage, event, None, t0])
            if first and event.query():
                self._proven(event, t0, self.clock())
        except Exception as error:
            self.fail(error)

    def end(self, stage, now):
        try:
            if self.index is not None and not self.cuda.is_current_stream_capturing():
                for span in reversed(self.spans):
                    if span[0] == stage:
                        if span[2] is None:
                            span[2] = self._record()
                        break
        except Exception as error:
            self.fail(error)

    def _record(self):
        event = self._pool.pop() if self._pool else self.cuda.Event(enable_timing=True)
        event.record()
        return event

    # Afterwards

    def _poll(self):
        """Send the device times of the steps whose events are complete."""
        while self.waiting:
            index, spans = self.waiting[0]
            if not all(e.query() for span in reversed(spans) for e in (span[2], span[1]) if e is not None):
                return
            self.waiting.popleft()
            self._send(index, spans, self.clock())

    def _send(self, index, spans, seen):
        times, lags = {}, {}
        for stage, first, last, host in spans:
            name = NAMES[stage]
            if last is not None:
                times[name] = times.get(name, 0) + _ns(first, last)
            if self.base is not None:
                after = _ns(self.base, first)
                self._narrow(host - after, seen - after)
                if name not in lags:
                    lags[name] = max(0, self.base_at + after - host)
        times.pop("data", None)
        self.probe.device_times(index, times, lags)
        self._recycle(spans)

    def _recycle(self, spans):
        events = [event for span in spans for event in (span[1], span[2]) if event is not None]
        if self.base is not None and events:
            after = _ns(self.base, events[0])
            if after > _BASE_NS:
                self._pool.append(self.base)
                self.base, self.base_at = events[0], self.base_at + after
        self._pool += [event for event in events if event is not self.base]

    def _proven(self, event, t0, t1):
        """`event` was recorded after t0 and complete before t1."""
        if t1 - t0 > _PROOF_NS:
            return
        if self.base is None:
            self.base, self.base_at = event, (t0 + t1) // 2
        else:
            after = _ns(self.base, event)
            self._narrow(t0 - after, t1 - after)

    def _narrow(self, low, high):
        """The base completed between these two of the host's times."""
        self.base_at = min(max(self.base_at, low), high)


def _ns(first, last):
    return int(first.elapsed_time(last) * 1e6)
