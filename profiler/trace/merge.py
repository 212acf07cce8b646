"""Several profiler windows of one process as one trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from profiler.trace.model import (
    NONE,
    Collectives,
    Device,
    Host,
    Ints,
    Losses,
    Memory,
    Syncs,
    Thread,
    Trace,
)

_TEXTS = ("name", "dims", "types", "stack", "concrete", "dtype", "group", "ranks")  # number texts
_NUMBERED = ("correlation", "wait_record", "external")  # may begin again in every window
_TIMES = ("start", "end", "time")
_APART_NS = 1_000_000  # between windows whose clocks do not tell their order
_Table = TypeVar("_Table", Host, Device, Syncs, Memory, Collectives)


def extent(trace: Trace) -> tuple[int, int]:
    """First and last instant of any event, ns on the trace's clock; (0, 0) of none."""
    columns = [(t.start, t.end) for t in (trace.host, trace.device) if len(t)]
    if len(trace.memory):
        columns.append((trace.memory.time, trace.memory.time))
    return (min((int(start[0]) for start, _ in columns), default=0),
            max((int(end.max()) for _, end in columns), default=0))


def span(trace: Trace) -> tuple[int, int]:
    """The same on the clock of the base that it states."""
    first, last = extent(trace)
    return trace.base_ns + first, trace.base_ns + last


def disjoint(traces: Sequence[Trace]) -> bool:
    """Whether no two of the traces overlap in time, by the bases that they state."""
    times = sorted(span(t) for t in traces)
    return all(one[1] <= two[0] for one, two in zip(times, times[1:], strict=False))


def merged(traces: Sequence[Trace]) -> Trace:
    """One trace of at least one window of a process; `cuts` says where each further one begins.

    Windows that overlap by their stated bases are put one after the other, in the order given.
    """
    if len(traces) == 1:
        return traces[0]
    if disjoint(traces):
        traces = sorted(traces, key=lambda t: t.base_ns)
        shifts = [t.base_ns - traces[0].base_ns for t in traces]
    else:
        shifts = [0]
        for one, two in zip(traces, traces[1:], strict=False):
            shifts.append(shifts[-1] + extent(one)[1] + _APART_NS - extent(two)[0])
    texts: dict[str, int] = {}
    threads: dict[Thread, int] = {}
    places = [_Place(_codes(texts, t.names), _codes(threads, t.threads), shift)
              for t, shift in zip(traces, shifts, strict=True)]
    for k in range(1, len(places)):
        places[k].after(places[k - 1], traces[k - 1])
    first = traces[0]
    return dataclasses.replace(
        first, source=", ".join(t.source for t in traces), names=tuple(texts), threads=tuple(threads),
        host=_joined(places, [t.host for t in traces]), device=_joined(places, [t.device for t in traces]),
        syncs=_joined(places, [t.syncs for t in traces]), memory=_joined(places, [t.memory for t in traces]),
        collectives=_joined(places, [t.collectives for t in traces]),
        absolute=all(t.absolute for t in traces), resolution_ns=max(t.resolution_ns for t in traces),
        properties=_first([t.properties for t in traces]), losses=_losses([t.losses for t in traces]),
        notes=tuple(dict.fromkeys(note for t in traces for note in t.notes)),
        cuts=tuple(extent(t)[0] + shift for t, shift in list(zip(traces, shifts, strict=True))[1:]))


class _Place:
    """Where the values of one window go: texts and threads by number, and what is added to others."""

    def __init__(self, texts: Ints, threads: Ints, shift: int) -> None:
        self.texts, self.threads, self.shift = texts, threads, shift
        self.numbers = dict.fromkeys(_NUMBERED, 0)
        self.rows = {"host": 0, "device": 0}

    def after(self, other: _Place, trace: Trace) -> None:
        """Behind the window `trace`, whose place is `other`."""
        self.rows = {"host": other.rows["host"] + len(trace.host),
                     "device": other.rows["device"] + len(trace.device)}
        tables = (trace.host, trace.device, trace.syncs)
        for name, columns in (("correlation", ("correlation", "wait_record")), ("external", ("external",))):
            most = [int(getattr(table, column).max(initial=0)) for table in tables for column in columns
                    if hasattr(table, column)]
            self.numbers[name] = other.numbers[name] + max(most)
        self.numbers["wait_record"] = self.numbers["correlation"]

    def put(self, name: str, values: Any) -> Any:
        """A column of the window in the whole."""
        if name in _TIMES:
            return values + self.shift
        if name in _NUMBERED:
            return np.where(values > 0, values + self.numbers[name], values)
        if name in self.rows:
            return np.where(values >= 0, values + self.rows[name], NONE).astype(values.dtype)
        if name in _TEXTS or name == "thread":
            places = self.threads if name == "thread" else self.texts
            return np.append(places, NONE)[values].astype(values.dtype)  # the last answers for NONE
        return values


def _joined(places: Sequence[_Place], tables: Sequence[_Table]) -> _Table:
    kind = type(tables[0])
    # `device` numbers rows in Collectives, and devices elsewhere.
    rows = kind is Collectives
    return kind(**{f.name: np.concatenate([
        place.put(f.name, getattr(table, f.name)) if rows or f.name != "device" else getattr(table, f.name)
        for place, table in zip(places, tables, strict=True)]) for f in dataclasses.fields(kind)})


def _codes(known: dict[Any, int], values: Iterable[Any]) -> Ints:
    """Number of each value, new ones at the end."""
    return np.array([known.setdefault(value, len(known)) for value in values], np.int64)


def _first(properties: Sequence[Mapping[int, Mapping[str, Any]]]) -> dict[int, Mapping[str, Any]]:
    return {key: value for found in reversed(properties) for key, value in found.items()}


def _losses(found: Sequence[Losses]) -> Losses:
    """Sums; where the first of those that were cut was readable up to."""
    sums = {f.name: sum(getattr(one, f.name) for one in found) for f in dataclasses.fields(Losses)
            if f.name not in ("truncated_at", "examples")}
    cut = [one.truncated_at for one in found if one.truncated_at is not None]
    return Losses(**sums, truncated_at=cut[0] if cut else None,
                  examples=tuple(text for one in found for text in one.examples))
