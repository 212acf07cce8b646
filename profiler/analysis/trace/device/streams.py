"""What came before an activity on its stream: whether it had to wait there, and for what."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.trace.joined import Joined, take
from profiler.trace import names
from profiler.trace.model import NONE, Codes, Flags, Ints
from profiler.trace.names import Call

_WAIT = re.compile(r"wait event", re.I)


def by_stream(j: Joined) -> tuple[Ints, Flags]:
    """Rows of Trace.device in order of device, stream and start; and where a stream begins in it: bool[n]."""
    device = j.trace.device
    order = np.lexsort((device.start, device.stream, device.device))
    own, stream = device.device[order], device.stream[order]
    first = np.ones(len(order), bool)
    first[1:] = (own[1:] != own[:-1]) | (stream[1:] != stream[:-1])
    return order, first


def previous_in_stream(j: Joined) -> Ints:
    """For each activity the one of its stream, of those that began before it, that ends last: int64[n].

    NONE for the first of a stream. Activities of one stream can overlap inside a graph.
    """
    device = j.trace.device
    result = np.full(len(device), NONE, np.int64)
    order, first = by_stream(j)
    for rows in np.split(order, np.flatnonzero(first)[1:]):
        reach = np.maximum.accumulate(device.end[rows])
        leads = np.where(device.end[rows] == reach, np.arange(len(rows)), 0)
        result[rows[1:]] = rows[np.maximum.accumulate(leads)][:-1]
    return result


def submitted_by(j: Joined) -> Codes:
    """Host row of the call that each device row is taken to come from: its launch, where the trace has it.

    Without one, that of what was before it on its stream: it was submitted between its
    neighbours. NONE where nothing was.
    """
    if (j.launch >= 0).all():
        return j.launch
    order, first = by_stream(j)
    launch = j.launch[order]
    nearest = np.maximum.accumulate(np.where((launch >= 0) | first, np.arange(len(order)), 0))
    result = np.empty_like(launch)
    result[order] = launch[nearest]
    return result


def first_in_idle_stream(j: Joined) -> Flags:
    """Activities whose stream was idle when their call began, of one call the first: bool[n]."""
    host, device = j.trace.host, j.trace.device
    result = np.zeros(len(device), bool)
    known = np.flatnonzero(j.launch >= 0)
    busy_until = take(device.end, previous_in_stream(j), np.iinfo(np.int64).min)
    result[known] = busy_until[known] <= host.start[j.launch[known]]
    _, first = np.unique(j.launch[known], return_index=True)  # rows are sorted by start
    later = np.ones(len(known), bool)
    later[first] = False
    result[known[later]] = False
    return result


def told_to_wait(j: Joined) -> Flags:
    """Activities before which a stream was told to wait for an event, since the one before them: bool[n].

    Their own stream where the file has synchronisation rows, else any.
    """
    trace = j.trace
    known = j.launch >= 0
    now = take(trace.host.start, j.launch, 0)
    since = take(now, previous_in_stream(j), np.iinfo(np.int64).min)
    told = np.flatnonzero(names.per_name(trace.names, trace.syncs.name, lambda n: bool(_WAIT.search(n))))
    if not len(told):
        calls = trace.host.start[j.call == Call.WAIT]
        return known & (np.searchsorted(calls, now) > np.searchsorted(calls, since))
    result = np.zeros(len(known), bool)
    start = trace.syncs.start[told]
    # Their device is not asked for: Kineto writes 0 where it does not know that of the context.
    for stream in np.unique(trace.syncs.stream[told]).tolist():
        own = trace.device.stream == stream
        calls = np.sort(start[trace.syncs.stream[told] == stream])
        result[own] = np.searchsorted(calls, now[own]) > np.searchsorted(calls, since[own])
    return result & known
