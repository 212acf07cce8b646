"""The launch queue of a device: how deep it is, and when blocked launch calls found room in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.replay.segments import QUEUE
from profiler.trace.model import Ints

BLOCKED = 5   # long launch calls from which the depth can be told, if most are nearly ALIKE
HELD = 200    # of which as many are looked at
ALIKE = 0.05


@dataclass(frozen=True)
class Queue:
    """Submissions to one device, in order: those before the trace began, then its launch calls."""

    call: Ints    # host row of each call, rising; of the last len(call) submissions
    begun: Ints   # measured start of the first activity of each submission, ns

    @property
    def earlier(self) -> int:
        """Submissions before the first call."""
        return len(self.begun) - len(self.call)

    def place(self, calls: Ints) -> tuple[Ints, Ints]:
        """Which of these host rows submit to this device, and at which place."""
        if not len(self.call):
            return calls[:0], calls[:0]
        at = np.minimum(np.searchsorted(self.call, calls), len(self.call) - 1)
        mine = np.flatnonzero(self.call[at] == calls)
        return mine, at[mine] + self.earlier


def queues(j: Joined) -> list[Queue]:
    """One for each device of the trace."""
    device, result = j.trace.device, []
    for one in np.unique(device.device).tolist():
        rows = np.flatnonzero(device.device == one)
        known = rows[j.launch[rows] >= 0]
        call, first = np.unique(j.launch[known], return_index=True)  # rows are sorted by start, as calls are
        lone = device.start[rows[j.launch[rows] < 0]]
        result.append(Queue(call.astype(np.int64), np.concatenate((lone, device.start[known[first]]))))
    return result


def depth(j: Joined, found: list[Queue], long: Ints) -> tuple[int, bool]:
    """Depth, and whether the trace shows it. `long`: host rows of launch calls that took long.

    It is the number of activities that had been submitted and not begun when these calls came free.
    """
    for queue in found:
        mine, place = queue.place(np.unique(long)[-HELD:])
        end = j.trace.host.end[np.unique(long)[-HELD:][mine]]
        pending = np.array([int((queue.begun[:i] > t).sum()) for i, t in zip(place.tolist(), end.tolist())])
        pending = pending[pending > QUEUE // 8]
        if len(pending) >= BLOCKED:
            low, middle, high = np.percentile(pending, [25, 50, 75])
            if high - low <= ALIKE * middle:
                return round(float(middle)), True
    return QUEUE, False


def freed(found: list[Queue], calls: Ints, deep: int) -> Ints:
    """When the queue had room for each call, ns; 0 where it always had, and for what is no launch call."""
    result = np.zeros(len(calls), np.int64)
    for queue in found:
        mine, place = queue.place(calls)
        before = place - deep
        result[mine] = np.where(before >= 0, queue.begun[np.maximum(before, 0)], 0)
    return result
