"""Launching: how many calls a step makes, what they cost the host, how soon the device begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.summary import Spread, spread
from profiler.analysis.trace.code.owners import durations
from profiler.analysis.trace.device.streams import first_in_idle_stream, told_to_wait
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import Flags, Ints, Kind
from profiler.trace.names import Call

LONG_MEDIANS, LONG_NS = 6, 30_000   # a launch call above both was held up


@dataclass(frozen=True, slots=True)
class Launches:
    """Of the calls that are looked at, `per_step` apart. A call inside another call is part of it."""

    calls: int                   # that launch a kernel or a graph
    graphs: int                  # of them, that launch a graph
    per_step: Ints               # calls of each step: int64[steps]; empty without steps
    kernels_per_step: Ints       # kernels launched by each step
    cost: Spread | None          # of a call on the host, ns
    cost_ns: int                 # sum over calls
    held_up: int                 # calls that took far longer than the median: a full queue, mostly
    held_up_ns: int              # beyond the median
    delay: Spread | None         # from the start of the call to the start of what it launched
    latency: Spread | None       # the same, of compute kernels whose stream had nothing else to do
    negative: int                # activities that start before their launch: left out of the two above
    unlaunched: int              # device activities without a launch in the file
    without_activity: int        # calls of which the file has no activity
    short_kernels: int           # shorter than the call that launched them; kernels of graphs left out
    single_kernels: int          # kernels with a launch call of their own


def launches(j: Joined, steps: Steps, among: Flags | None = None, rows: Flags | None = None) -> Launches:
    """Launch statistics of a trace.

    `among`: host rows to look at, `rows`: device rows to look at, bool[n] each; None: all. `per_step`,
    `kernels_per_step` and the median beyond which a call was held up are of the whole trace in any case.
    """
    host, device = j.trace.host, j.trace.device
    cost = durations(host.start, host.end)
    every = np.flatnonzero(j.kernel_launch)
    calls = every if among is None else every[among[every]]
    graph = j.call[calls] == Call.GRAPH
    shown = np.ones(len(device), bool) if rows is None else rows
    kernel = device.kind == Kind.KERNEL
    launched = j.launch >= 0
    owner = np.where(launched, j.launch, 0)
    single = kernel & launched & ~_in_graph(j)
    late = device.start - host.start[owner] if len(host) else np.zeros(len(device), np.int64)
    fine = launched & (late >= 0) & shown
    owns = np.zeros(len(host), bool)
    owns[j.launch[launched]] = True
    middle = float(np.median(cost[every])) if len(every) else 0.0
    long = held_up(j) if among is None else np.intersect1d(held_up(j), calls)
    single &= shown
    return Launches(
        calls=len(calls), graphs=int(graph.sum()),
        per_step=_per_step(steps, host.start[every]),
        kernels_per_step=_per_step(steps, host.start[j.launch[kernel & launched]]),
        cost=_spread(cost[calls]), cost_ns=int(cost[calls].sum()),
        held_up=len(long), held_up_ns=round(float((cost[long] - middle).sum())),
        delay=_spread(late[fine]),
        latency=_spread(late[fine & kernel & j.compute & first_in_idle_stream(j) & ~told_to_wait(j)]),
        negative=int((launched & shown & (late < 0)).sum()), unlaunched=int((~launched & shown).sum()),
        without_activity=int((~owns[calls]).sum()),
        short_kernels=int((single & (durations(device.start, device.end) < cost[owner])).sum())
        if len(host) else 0,
        single_kernels=int(single.sum()))


def held_up(j: Joined) -> Ints:
    """Launch calls that took far longer than the median one, rows of Trace.host: a full queue, mostly."""
    cost = durations(j.trace.host.start, j.trace.host.end)
    calls = np.flatnonzero(j.kernel_launch)
    middle = float(np.median(cost[calls])) if len(calls) else 0.0
    return calls[cost[calls] > max(LONG_MEDIANS * middle, LONG_NS)]


def _spread(times: Ints) -> Spread | None:
    return spread(times) if len(times) else None


def _per_step(steps: Steps, times: Ints) -> Ints:
    if not steps.per_step:
        return np.zeros(0, np.int64)
    at = steps.at(times)
    return np.bincount(at[at >= 0], minlength=len(steps)).astype(np.int64)


def _in_graph(j: Joined) -> Flags:
    """Device rows launched with a graph."""
    known = np.flatnonzero(j.launch >= 0)
    result = np.zeros(len(j.launch), bool)
    result[known] = j.call[j.launch[known]] == Call.GRAPH
    return result
