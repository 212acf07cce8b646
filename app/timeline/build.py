"""Lanes from the traces of a run: steps, host threads, streams, and lines of memory and lag. Free of Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.timeline import stages
from app.timeline.spans import CODE, Builder, Codes, Counter, Ints, Small
from profiler.analysis.trace.code.owners import levels
from profiler.analysis.trace.joined import parents
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.words import class_title
from profiler.trace.merge import extent
from profiler.trace.model import Flags, Kind, Trace

TOUCHING = 1000  # ns by which activities of a stream may overlap: clocks are not finer


@dataclass(frozen=True)
class Traced:
    """One process of the traces. `shift` is added to its times to get ns since the run's start."""

    facts: TraceFacts
    shift: int
    number: int
    several: bool

    @property
    def trace(self) -> Trace:
        return self.facts.trace

    @property
    def extent(self) -> tuple[int, int]:
        first, last = extent(self.trace)
        return first + self.shift, last + self.shift

    @cached_property
    def of_host(self) -> Small:
        return stages.of_host(self.facts.joined, self.facts.found, self.facts.labels)

    def title(self, text: str) -> str:
        """With the rank, where there are several."""
        rank = self.trace.rank if self.trace.rank is not None else self.number
        return f"{text}, rank {rank}" if self.several else text


def add(builder: Builder, traced: Traced) -> None:
    """All lanes of a process. Those without spans are left out."""
    _steps(builder, traced)
    host = traced.trace.host
    python = host.kind == Kind.PYTHON
    rows = ~python & ~stages.is_step(traced.facts.joined)
    loop = traced.facts.found.thread
    autograd = traced.facts.labels.autograd_threads
    busy = np.bincount(host.thread, minlength=len(traced.trace.threads))
    others = [k for k in np.argsort(-busy, kind="stable").tolist() if k not in (loop, *autograd)]
    for thread in [k for k in (loop, *autograd, *others) if k >= 0]:
        own = host.thread == thread
        _thread(builder, traced, thread, own & rows, "host")
        _thread(builder, traced, thread, own & python, "python")
    _streams(builder, traced)
    _memory(builder, traced)
    _lag(builder, traced)


def depths(start: Ints, end: Ints, lane: Codes | Ints) -> Ints:
    """How deep each span lies in others of its lane; those of one depth are disjoint."""
    parent = parents(start, end, np.asarray(lane, np.int32))
    tree = levels(parent)
    result = np.zeros(len(start), np.int64)
    for depth, (a, b) in enumerate(zip(tree.edges[:-1], tree.edges[1:])):
        result[tree.order[a:b]] = depth
    return result


def _steps(builder: Builder, traced: Traced) -> None:
    steps = traced.facts.found
    if not steps.per_step:
        return
    names = np.array([builder.code(f"#{n}") for n in steps.number.tolist()], np.int32)
    columns = {
        "start": steps.start + traced.shift,
        "end": np.maximum(steps.end, steps.start + 1) + traced.shift,
        "colour": np.full(len(steps), CODE["other"]),
        "name": names,
        "ref": np.arange(len(steps)),
    }
    builder.add(
        f"steps/{traced.number}",
        traced.title("Steps"),
        "",
        "steps",
        columns,
        np.zeros(len(steps), np.int64),
        traced.number,
    )


def _thread(builder: Builder, traced: Traced, thread: int, rows: Flags, kind: str) -> None:
    host, told = traced.trace.host, traced.trace.threads[thread]
    at = np.flatnonzero(rows)
    if not len(at):
        return
    start = host.start[at]
    end = np.maximum(host.end[at], start + 1)
    depth = depths(start, end, np.zeros(len(at), np.int32))
    number = told.label or f"thread {told.tid}"
    if thread == traced.facts.found.thread:
        title, note = "CPU main", number
    elif thread in traced.facts.labels.autograd_threads:
        title, note = "autograd", number
    else:
        title, note = (told.name, number) if told.name and told.name != number else (number, "")
    if kind == "python":
        title, note = "Python", number
    columns = {
        "start": start + traced.shift,
        "end": end + traced.shift,
        "colour": traced.of_host[at],
        "name": builder.codes(traced.trace.names, host.name[at]),
        "ref": at,
    }
    builder.add(
        f"{kind}/{traced.number}/{thread}", traced.title(title), note, kind, columns, depth, traced.number
    )


def _streams(builder: Builder, traced: Traced) -> None:
    device, j = traced.trace.device, traced.facts.joined
    colour = stages.of_device(j, traced.of_host)
    most: dict[int, tuple[int, int]] = {}  # of each device the stream with most compute, and its row
    ids = np.unique(device.device).tolist()
    for one in ids:
        for stream in np.unique(device.stream[device.device == one]).tolist():
            at = np.flatnonzero((device.device == one) & (device.stream == stream))
            start = device.start[at]
            end = np.maximum(device.end[at], start + 1)
            following = np.append(start[1:], np.iinfo(np.int64).max)
            over = end - following
            end = np.where((over > 0) & (over <= TOUCHING) & (following > start), following, end)
            columns = {
                "start": start + traced.shift,
                "end": end + traced.shift,
                "colour": colour[at],
                "name": builder.codes(traced.trace.names, device.name[at]),
                "ref": at,
            }
            where = f"GPU {one} stream {stream}" if len(ids) > 1 else f"Stream {stream}"
            what, work = _stream_note(traced, at)
            title = "NCCL" if what == "communication" else where
            lane = builder.add(
                f"stream/{traced.number}/{one}/{stream}",
                traced.title(title),
                where.lower() if title == "NCCL" else what,
                "stream",
                columns,
                depths(start, end, np.zeros(len(at), np.int32)),
                traced.number,
            )
            if lane is not None and work >= most.get(one, (0, 0))[0]:
                most[one] = (work, lane.first)
    _gaps(builder, traced, most)


def _stream_note(traced: Traced, at: Ints) -> tuple[str, int]:
    """What a stream is for, by the time it takes; and its time of compute, ns."""
    device, j = traced.trace.device, traced.facts.joined
    long = (device.end - device.start)[at]
    kinds = {
        "communication": j.communication[at],
        "compute": j.compute[at] & (device.kind[at] == Kind.KERNEL),
        "copies": device.kind[at] == Kind.MEMCPY,
    }
    time = {name: int(long[rows].sum()) for name, rows in kinds.items()}
    best = max(time, key=lambda name: time[name])
    return (best if time[best] else ""), time["compute"]


def _gaps(builder: Builder, traced: Traced, rows: dict[int, tuple[int, int]]) -> None:
    """Idle times of the main device, in the row of its busiest stream."""
    part = traced.facts.partition
    if part.gaps is None or part.device not in rows or not len(part.gaps):
        return
    found = part.gaps
    table = np.array([builder.code(class_title(text)) for text in found.texts], np.int32)
    builder.add_gaps(
        rows[part.device][1], found.start + traced.shift, found.end + traced.shift, table[found.cause]
    )


def _memory(builder: Builder, traced: Traced) -> None:
    memory = traced.trace.memory
    for device in np.unique(memory.device[memory.device_type != 0]).tolist():
        rows = (memory.device == device) & (memory.device_type != 0) & (memory.allocated >= 0)
        counter = Counter(
            f"allocated/{traced.number}/{device}",
            traced.title("Allocated"),
            "GiB, trace",
            traced.number,
        )
        builder.add_counter(counter, memory.time[rows] + traced.shift, memory.allocated[rows] / 2**30)


def _lag(builder: Builder, traced: Traced) -> None:
    """How far the device is behind the host: from the start of a launch call to that of its activity."""
    j = traced.facts.joined
    device, host = traced.trace.device, traced.trace.host
    rows = np.flatnonzero((j.launch >= 0) & (device.device == j.main_device) & j.compute)
    if not len(rows):
        return
    lag = np.maximum(device.start[rows] - host.start[j.launch[rows]], 0)
    counter = Counter(
        f"lag/{traced.number}",
        traced.title("Device lag"),
        "ms, trace",
        traced.number,
    )
    builder.add_counter(counter, device.start[rows] + traced.shift, lag / 1e6)


def processes(groups: Sequence[tuple[Trace, int]]) -> list[Traced]:
    """Of each trace with its shift."""
    return [
        Traced(TraceFacts(trace, what_if=False), shift, number, len(groups) > 1)
        for number, (trace, shift) in enumerate(groups)
    ]
