"""Step times of a replay, measured as those of a trace are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.steady import LONGER, Steady
from profiler.replay.run import Ends
from profiler.replay.segments import Segments
from profiler.trace.model import NONE, Flags, Ints


@dataclass(frozen=True)
class Pace:
    """Steps of one replay, or of the trace: host windows, distances between last activities, pauses; ns."""

    host: Ints      # of counted steps
    device: Ints    # of counted steps with a predecessor; empty without activities
    pause: float    # median time between a host window and the next one

    @property
    def host_ns(self) -> float:
        return float(np.median(self.host))

    @property
    def device_ns(self) -> float:
        return float(np.median(self.device)) if len(self.device) else float(NONE)

    @property
    def on_device(self) -> bool:
        """Whether the device sets the pace: its steps are longer than the host's by more than 2 %."""
        return self.device_ns > LONGER * self.host_ns

    @property
    def step(self) -> float:
        """Steady step time."""
        return self.device_ns if self.on_device else self.host_ns

    def of(self, other: Pace) -> float:
        """Step time by the measure that `other` goes by."""
        return self.device_ns if other.on_device and len(self.device) else self.host_ns

    def over(self, changed: Pace) -> float:
        """Step time over that of a changed replay.

        A trace that goes by the device is compared by the device. Where a trace goes by host windows
        and the changed replay does not, its host is still running ahead: in the long run its windows
        are the distances on the device without the pause between steps, and it would go by them.
        """
        if self.on_device and len(changed.device):
            return self.device_ns / max(changed.device_ns, 1.0)
        if not changed.on_device:
            return self.host_ns / max(changed.host_ns, 1.0)
        long_run = changed.device_ns - self.pause
        by_device = changed.device_ns > LONGER * long_run
        return self.host_ns / max(changed.device_ns if by_device else long_run, 1.0)

    def mean_over(self, changed: Pace) -> float:
        """The ratio of mean host windows, or distances where the changed replay goes by the device."""
        if (self.on_device or changed.on_device) and len(self.device) and len(changed.device):
            return float(self.device.mean() / max(changed.device.mean(), 1.0))
        return float(self.host.mean() / max(changed.host.mean(), 1.0))

    def spread(self, changed: Pace) -> list[float]:
        """The ratio with each step left out in turn: what one step more or less would change."""
        if len(self.host) < 2 or len(self.device) != len(changed.device):
            return []
        without = []
        for i in range(len(self.host)):
            one, two = (Pace(np.delete(p.host, i), np.delete(p.device, i) if len(p.device) == len(p.host)
                             else p.device, p.pause) for p in (self, changed))
            without.append(one.over(two))
        return without


def paces(ends: Ends, segments: Segments) -> Pace:
    """Step times of a replay of the segments."""
    last = np.array(ends.last, np.int64)
    follows = segments.follows
    start, end = np.array(ends.start, np.int64), np.array(ends.end, np.int64)
    return _pace(start, end, last, follows, segments.counted)


def measured(steady: Steady, segments: Segments) -> Pace:
    """Step times of the same steps in the trace."""
    row = segments.step
    return _pace(segments.start, segments.end, steady.last[row], segments.follows, segments.counted)


def _pace(start: Ints, end: Ints, last: Ints, follows: Flags, counted: Flags) -> Pace:
    before = np.concatenate(([NONE], last[:-1]))
    has = follows & counted & (last > 0) & (before >= 0)
    pauses = (start[1:] - end[:-1])[follows[1:]]
    return Pace((end - start)[counted], np.maximum(last - before, 0)[has],
                float(np.median(pauses)) if len(pauses) else 0.0)
