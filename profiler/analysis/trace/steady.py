"""Steady step time, and the windows that the partition is of. Definitions, section 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.device.streams import submitted_by
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE, Flags, Ints

HOST = "host"
DEVICE = "device"
LONGER = 1.02  # windows are the device's when its steps are longer than the host's by more than this


@dataclass(frozen=True)
class Steady:
    """Step time of a trace, ns. Rows of the arrays are those of `Steps`."""

    kind: str                # HOST or DEVICE: what `windows` and `step_ns` are of
    step_ns: int             # median over counted windows; NONE when the trace has no steps
    mean_ns: int             # mean over them
    host_ns: int             # median host window
    device_ns: int           # median distance between last device activities; NONE when there are none
    windows: Ints            # int64[n, 2]; without a predecessor a step has no device window: it is empty
    counted: Flags           # windows that enter medians and means
    last: Ints               # end of the last device activity of each step; NONE without one

    @property
    def lengths(self) -> Ints:
        """Length of every window, ns."""
        return self.windows[:, 1] - self.windows[:, 0]


def steady(j: Joined, steps: Steps, device: int | None = None) -> Steady:
    """Host windows, or the windows between last device activities when those are more than 2 % longer.

    `device` is the id of the device that is looked at; None for the one with most compute.
    """
    host = np.stack((steps.start, steps.end), axis=1)
    last = last_activities(j, steps, j.main_device if device is None else device)
    if not steps.per_step:
        return Steady(HOST, NONE, NONE, NONE, NONE, host, steps.counted, last)
    host_ns = middle((host[:, 1] - host[:, 0])[steps.counted])
    before = np.concatenate(([NONE], last[:-1]))
    ends = np.maximum(last, before)  # a step whose work ends before that of the step before it adds none
    has = steps.follows() & (before >= 0) & (last >= 0)
    device_ns = middle((ends - before)[has & steps.counted])
    if device_ns <= LONGER * host_ns:
        lengths = (host[:, 1] - host[:, 0])[steps.counted]
        return Steady(HOST, host_ns, _mean(lengths), host_ns, device_ns, host, steps.counted, last)
    windows = np.stack((np.where(has, before, 0), np.where(has, ends, 0)), axis=1)
    counted = has & steps.counted
    lengths = (ends - before)[counted]
    return Steady(DEVICE, device_ns, _mean(lengths), host_ns, device_ns, windows, counted, last)


def middle(values: Ints) -> int:
    """The median as whole ns; NONE of nothing."""
    return round(float(np.median(values))) if len(values) else NONE


def _mean(values: Ints) -> int:
    return round(int(values.sum()) / len(values)) if len(values) else NONE


def step_of_activities(j: Joined, steps: Steps) -> Ints:
    """Step that launched each device row: int64, NONE outside steps.

    A row whose launch is not in the trace belongs to the step of the row before it on its stream;
    where no launch is, to the step that it begins in.
    """
    if not (j.launch >= 0).any():
        return steps.at(j.trace.device.start)
    call = submitted_by(j)
    return np.where(call >= 0, steps.at(j.trace.host.start[call]), NONE)


def last_activities(j: Joined, steps: Steps, device: int) -> Ints:
    """End of the last activity on `device` that each step launched: int64[n], NONE without one."""
    last = np.full(len(steps), NONE, np.int64)
    step = step_of_activities(j, steps)
    own = (step >= 0) & (j.trace.device.device == device)
    np.maximum.at(last, step[own], j.trace.device.end[own])
    return last
