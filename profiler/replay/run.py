"""The replay itself: one pass over a program's operations, in the order of the host.

A program is a list of operations of the serial host chain. Nothing in it is an absolute
time: every operation has the host time before it and its own durations, and everything
else follows from the edges. The loop is plain Python on lists and local names, since
each operation depends on the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from profiler.trace.model import NONE


class Op(IntEnum):
    """What an operation does. `t` is the host's clock, `ready[lane]` when a stream's last work is done."""

    LAUNCH = 0   # submits an activity: it starts at t + delay or at ready + gap, whichever is later
    FOLLOW = 1   # a further activity of the same launch
    WAIT = 2     # the stream `lane` waits for activity `other`, or for the stream -2 - `other`
    STREAM = 3   # the host waits for the stream `lane`
    EVENT = 4    # the host waits for activity `other`, or for what was on stream -2 - `other` before the step
    DEVICE = 5   # the host waits for all streams of the device `lane`
    DRAIN = 6    # as DEVICE, and the call's own work comes after it
    FETCH = 7    # the host waits for a batch, `delay` after the last one or (other 0) the step's start
    START = 8    # a step's host window begins
    END = 9      # and ends
    SKIP = 10    # an activity that is left out in this scenario
    HOST = 11    # only takes time
    BESIDE = 12  # an activity that scenarios add, on a stream of its own; nothing refers to it by number


@dataclass
class Program:
    """Operations in order, n each; times in ns. Scenarios are copies with other lists."""

    kind: list[int]
    before: list[int]   # host time since the operation before
    cost: list[int]     # host time of the operation itself
    delay: list[int]    # launches: latency from the start of the call; waits: tail after what was waited for
    gap: list[int]      # activities: after what was before them on the stream
    length: list[int]   # activities: how long they run
    lane: list[int]     # stream, numbered from 0
    other: list[int]    # activity (numbered in order of submission) or stream that is waited for
    devices: list[list[int]]  # lanes of each device; DEVICE and DRAIN name theirs in `lane`
    main: int           # device that steps are measured on; NONE without any
    depth: int          # activities of one device that may be submitted and not yet begun


@dataclass(frozen=True)
class Ends:
    """When the steps of a replay began and ended on the host, and when their last activity did; ns."""

    start: list[int]
    end: list[int]
    last: list[int]


_CODES = tuple(op.value for op in (Op.LAUNCH, Op.FOLLOW, Op.WAIT, Op.SKIP, Op.DRAIN, Op.BESIDE, Op.START,
                                   Op.END, Op.STREAM, Op.EVENT, Op.DEVICE, Op.FETCH))


def _queues(p: Program) -> list[list[int]]:
    """For each lane the starts of what its device was given, as if an empty queue had taken some before."""
    numbered = sorted((lane, number) for number, lanes in enumerate(p.devices) for lane in lanes)
    begun = [[0] * p.depth for _ in p.devices]
    return [begun[number] for _, number in numbered]


def run(p: Program) -> Ends:
    """Times of every step."""
    launch, follow, wait, skip, drain, beside, begin, finish, stream, event, device, fetch = _CODES
    queues = _queues(p)
    ready = [0] * len(queues)
    main = p.devices[p.main] if p.main != NONE else []
    ends: list[int] = []
    result = Ends([], [], [])
    add = ends.append
    t = called = due = began = 0
    depth, before_step = -p.depth, ready
    for kind, before, cost, delay, gap, length, lane, other in zip(
            p.kind, p.before, p.cost, p.delay, p.gap, p.length, p.lane, p.other):
        t += before
        if kind == launch:
            queue = queues[lane]
            called = t = t if t > queue[depth] else queue[depth]
            s = ready[lane] + gap  # comparisons instead of max(): a call would cost as much as all else here
            if t + delay > s:
                s = t + delay
            queue.append(s)
            s += length
            ready[lane] = s
            add(s)
            t += cost
        elif kind == follow:
            s = ready[lane] + gap
            if called + delay > s:
                s = called + delay
            s += length
            ready[lane] = s
            add(s)
        elif kind == wait:
            ready[lane] = max(ready[lane], ends[other] if other >= 0 else ready[-2 - other])
        elif kind == skip:
            add(ready[lane])
            t += cost
        elif kind == drain:
            t = max(t, max([ready[k] for k in p.devices[lane]])) + cost
        elif kind == begin:
            result.start.append(t)
            began, before_step = t, ready.copy()
        elif kind == finish:
            result.end.append(t)
            result.last.append(max([ready[lane] for lane in main], default=NONE))
        elif kind == beside:
            ready[lane] = max(ready[lane], t + delay) + length
        else:
            t += cost
            if kind == stream:
                t = max(t, ready[lane] + delay)
            elif kind == event:
                t = max(t, (ends[other] if other >= 0 else before_step[-2 - other]) + delay)
            elif kind == device:
                t = max(t, max([ready[k] for k in p.devices[lane]]) + delay)
            elif kind == fetch:
                due = began + delay if other >= 0 else due + delay
                t = max(t, due)
    return result
