"""Events, chunk by chunk, to columns: what is kept of a chunk are arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from profiler.importers.kineto import structs, times
from profiler.importers.kineto.arguments import MOST, Arguments
from profiler.importers.kineto.kinds import (
    CALLS,
    DEVICE,
    OPERATORS,
    PLAIN,
    SKIPPED,
    SYNCS,
    UNKNOWN,
    Categories,
)
from profiler.importers.kineto.structs import Begin, End, Instant, Meta, OldInstant, Slice
from profiler.importers.kineto.tables import TABLES, Part, joined, size
from profiler.importers.kineto.tally import Tally
from profiler.importers.kineto.texts import (
    Names,
    Threads,
    Values,
    addresses,
    compact,
    integers,
    lines,
    products,
)
from profiler.trace.model import NONE, Codes, Ints, Kind

_DIGITS = re.compile(r"(-?\d+)\s*$")


class Columns:
    """The tables of one file in parts, one a chunk and group; `parts[table]` are columns by name."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.clock = times.Clock()
        self.names = Names()
        self.threads = Threads()
        self.parts: dict[str, list[Part]] = {table: [] for table in TABLES}
        self.rows = dict.fromkeys(TABLES, 0)
        self.halves = False  # some events have begin and end apart
        self.labels: dict[tuple[str, Any], str] = {}  # by ("process_name", pid), ("thread_name", (pid, tid))
        self._categories = Categories()
        self._json = Values(self.names, compact)
        self._stacks = Values(self.names, lines)
        self._begun: dict[str, list[Begin[Any]]] = {}

    def add(self, events: list[Any]) -> None:
        """Append a chunk. Raises times.InexactTimes before anything of it is kept."""
        slices = [e for e in events if e.__class__ is Slice]
        others = [e for e in events if e.__class__ in _OTHERS] if len(slices) < len(events) else []
        start, duration = self.clock.starts([e.ts for e in slices]), times.durations([e.dur for e in slices])
        instants = [e for e in others if e.__class__ in _INSTANTS and e.name == "[memory]"]
        moments = self.clock.starts([e.ts for e in instants])
        halves = [e for e in others if e.__class__ in (Begin, End)]
        self.clock.starts([e.ts for e in halves])
        self.halves = self.halves or bool(halves)
        if paired := self._pair(halves):
            slices += paired
            start = np.concatenate((start, self.clock.starts([e.ts for e in paired])))
            duration = np.concatenate((duration, times.durations([e.dur for e in paired])))
        self._slices(slices, start, duration)
        if instants:
            self._memory(instants, moments)
        self._meta([e for e in others if e.__class__ is Meta])

    def finish(self) -> None:
        """Count what began and had not ended at the end of the file."""
        for event in (e for begun in self._begun.values() for e in begun):
            self.tally.unfinished += 1
            self.tally.example(event.name, "began and never ended")
        self._begun.clear()

    def packed(self) -> dict[str, Any]:
        """Everything, for another process. The parts are used up."""
        return {"texts": self.names.texts, "lanes": self.threads.lanes, "base_us": self.clock.base_us,
                "tables": {table: joined(table, self.parts.pop(table)) for table in TABLES},
                "labels": self.labels, "tally": self.tally}

    def _pair(self, halves: list[Any]) -> list[Slice[Any]]:
        """Events whose begin and end are written apart."""
        result = []
        for event in halves:
            lane = repr(self.threads.canonical((event.pid, event.tid)))
            if event.__class__ is Begin:
                self._begun.setdefault(lane, []).append(event)
            elif self._begun.get(lane):
                first = self._begun[lane].pop()
                result.append(Slice(first.cat, first.name, first.pid, first.tid, first.ts,
                                    times.between(first.ts, event.ts), first.args))
            else:
                self.tally.unfinished += 1
        return result

    def _slices(self, slices: list[Slice[Any]], start: Ints, duration: Ints) -> None:
        categories = self._categories
        try:
            code = np.array([categories[e.cat] for e in slices], np.int32)
        except TypeError:  # a category that is no text
            code = np.array([categories[e.cat if isinstance(e.cat, str) else ""] for e in slices], np.int32)
        group, kind = code >> 8, (code & 255).astype(np.uint8)
        for i in np.flatnonzero(group == UNKNOWN).tolist():
            group[i] = DEVICE if b'"stream"' in bytes(slices[i].args) else OPERATORS
        good = times.usable(start, duration)
        for i in np.flatnonzero(~good & (group != SKIPPED)).tolist():
            self.tally.lose(slices[i].name, _reason(int(start[i]), int(duration[i]), slices[i].dur))
        for wanted, build in ((OPERATORS, self._operators), (CALLS, self._calls), (PLAIN, self._host),
                              (DEVICE, self._device), (SYNCS, self._syncs)):
            rows = np.flatnonzero((group == wanted) & good)
            if len(rows):
                part = {"start": start[rows], "end": start[rows] + duration[rows], "kind": kind[rows]}
                build([slices[i] for i in rows.tolist()], part)

    def _operators(self, events: list[Slice[Any]], part: Part) -> None:
        args = Arguments(events, structs.OperatorArgs, self.tally)
        part |= args.numbers("external", "sequence", "forward_thread")
        part |= args.codes(self._json, "dims", "types", "concrete") | args.codes(self._stacks, "stack")
        self._collectives(events, args, "host")
        self._host(events, part)

    def _calls(self, events: list[Slice[Any]], part: Part) -> None:
        args = Arguments(events, structs.CallArgs, self.tally)
        part |= args.numbers("correlation", "external")
        self._host(events, part)

    def _host(self, events: list[Slice[Any]], part: Part) -> None:
        part |= {"name": self._named(events), "thread": self._lanes(events)}
        self.append("host", part)

    def _device(self, events: list[Slice[Any]], part: Part) -> None:
        args = Arguments(events, structs.DeviceArgs, self.tally)
        part |= args.numbers("correlation", "external", "bytes") | _place(events, args)
        part |= args.numbers("registers", "shared", dtype=np.int32)
        part |= {"name": self._named(events), "kind": np.where(
            part["kind"] < Kind.KERNEL, np.uint8(Kind.DEVICE_OTHER), part["kind"])}
        if args.has("grid"):
            part["grid"] = products([a.grid for a in args.items])
        if args.has("block"):
            part["block"] = products([a.block for a in args.items], np.int32)
        self._collectives(events, args, "device")
        self.append("device", part)

    def _syncs(self, events: list[Slice[Any]], part: Part) -> None:
        args = Arguments(events, structs.SyncArgs, self.tally)
        names = [e.name if a.kind is None else a.kind for e, a in zip(events, args.items)]
        part |= {"name": self._texts(names)} | _place(events, args)
        part |= args.numbers("correlation", "wait_stream", "wait_record")
        part.pop("kind")
        self.append("syncs", part)

    def _memory(self, events: list[Any], time: Ints) -> None:
        args = Arguments(events, structs.MemoryArgs, self.tally)
        none = int(np.iinfo(np.int64).min)
        sizes = integers([a.bytes for a in args.items], otherwise=none)
        good = (time != times.UNUSABLE) & (sizes >= -MOST) & (sizes <= MOST)
        for i in np.flatnonzero(~good).tolist():
            self.tally.lose(events[i].name, "no usable time or size")
        part = {"time": time, "bytes": sizes, "thread": self._lanes(events),
                "address": addresses([a.address for a in args.items])}
        part |= args.numbers("device_type", "device", dtype=np.int32) | args.numbers("allocated", "reserved")
        self.append("memory", {k: v[good] for k, v in part.items()})

    def _collectives(self, events: list[Slice[Any]], args: Arguments, table: str) -> None:
        """What communication events say; `table` tells which rows they are: those about to be appended."""
        if not (rows := args.given("collective")):
            return
        events = [events[i] for i in rows]
        args = Arguments(events, structs.CollectiveArgs, self.tally)
        place = np.array(rows, np.int32) + np.int32(self.rows[table])
        part = {table: place, "name": self._texts([a.name for a in args.items])}
        for column in ("dtype", "group", "ranks"):
            given = [getattr(a, column) for a in args.items]
            part[column] = self._texts([compact(v) if isinstance(v, list | dict) else v for v in given])
            part[column][[v is None or v == "" for v in given]] = NONE
        part |= args.numbers("group_size", "elements_in", "elements_out", "sequence")
        self.append("collectives", part)

    def _meta(self, events: list[Meta]) -> None:
        if not events:
            return
        for event, args in zip(events, Arguments(events, structs.MetaArgs, self.tally).items):
            lane = self.threads.canonical((event.pid, event.tid))
            if event.name == "thread_name":
                self.labels["thread_name", lane] = str(args.name or "").strip()
            elif event.name in ("process_name", "process_labels"):
                self.labels[event.name, lane[0]] = str(args.name or args.labels or "").strip()

    def append(self, table: str, part: Part) -> None:
        self.rows[table] += size(part)
        self.parts[table].append(part)

    def _named(self, events: list[Any]) -> Codes:
        return self._texts([e.name for e in events])

    def _texts(self, values: list[Any]) -> Codes:
        names = self.names
        try:
            return np.array([names[v] for v in values], np.int32)
        except TypeError:  # lists and objects
            return np.array([names[v if isinstance(v, str) else str(v)] for v in values], np.int32)

    def _lanes(self, events: list[Any]) -> Codes:
        threads, pid = self.threads, events[0].pid
        try:
            own = threads.of(pid)  # mostly there is one process, and numbers are found faster than pairs
            return np.array([own[e.tid] if e.pid == pid else threads[e.pid, e.tid] for e in events], np.int32)
        except TypeError:
            return np.array([threads[str(e.pid), str(e.tid)] for e in events], np.int32)


_INSTANTS = (Instant, OldInstant)
_OTHERS = (*_INSTANTS, Begin, End, Meta)


def _reason(start: int, duration: int, given: Any) -> str:
    if start == times.UNUSABLE:
        return "no usable time"
    if duration == times.UNUSABLE:
        return "no duration" if given is None else "no usable duration"
    return "a negative duration"


def _place(events: list[Slice[Any]], args: Arguments) -> Part:
    """Device and stream: of the arguments, else the lane, whose texts end in the number ("stream 7")."""
    part = args.numbers("device", dtype=np.int32) | args.numbers("stream")
    for field, lane, dtype in (("device", "pid", np.int32), ("stream", "tid", np.int64)):
        column = part.setdefault(field, np.full(len(events), NONE, dtype))
        for i in np.flatnonzero(column == NONE).tolist():
            if getattr(args.items[i], field) is None:
                value = getattr(events[i], lane)
                found = _DIGITS.search(value) if isinstance(value, str) else None
                column[i:i + 1] = integers([found.group(1) if found else value], column.dtype)
    return part
