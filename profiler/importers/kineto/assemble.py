"""Parts to a trace: absurd times out, rows sorted, annotations told from operators, the file's own zero."""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from profiler.errors import TraceError
from profiler.importers.kineto.columns import Columns
from profiler.importers.kineto.kinds import OLD_OPERATOR
from profiler.importers.kineto.tables import TABLES, Part, joined, size
from profiler.importers.kineto.texts import number
from profiler.trace import names
from profiler.trace.model import (
    NONE,
    Collectives,
    Device,
    Flags,
    Host,
    Ints,
    Kind,
    Memory,
    Syncs,
    Thread,
    Trace,
)

_DAY = 86_400 * 10**9
_SPANS = 100  # so many times what most events span, and at least a day, away from them: no part of the trace
_MOST = {"device": 64, "stream": 1024, "thread": 4096}  # different ones in a table
_LONGEST = 20_000  # characters of a name; those of generated kernels have some thousands
_EPOCH_US = range(10**15, 4 * 10**15)  # 2001 to 2096: what can be a time since the epoch
_NODE = re.compile(r"\wBackward\d*$|(AccumulateGrad|CopyBackwards|CopySlices|GraphRoot|UndefinedGrad)$")
# Of host events with the same times, which is likely to lie in which: by Kind, the outermost is 0.
_INNER = np.full(256, 6, np.uint8)
for _depth, _kind in enumerate((Kind.ANNOTATION, Kind.PYTHON, Kind.OPERATOR, Kind.HOST_OTHER, Kind.RUNTIME,
                                Kind.DRIVER)):
    _INNER[_kind] = _depth
_RANK = re.compile(r"(?<![a-z])(?:rank|worker)[-_ ]?(\d+)", re.IGNORECASE)


def assemble(source: str, path: str, columns: Columns, top: Mapping[str, Any]) -> Trace:
    """The trace of one file; `path` is where to look for the rank when the file does not tell.

    Raises TraceError where no event could be used.
    """
    tables = {name: joined(name, columns.parts.pop(name)) for name in TABLES}
    _drop_absurd(tables, columns)
    _drop_scattered(tables, columns)
    _tell_devices(tables, columns)
    if not len(tables["host"]["start"]) and not len(tables["device"]["start"]):
        raise TraceError(f"{source} holds no events", _why_none(columns))
    texts = _texts(columns.names.texts, tables)
    _tell_annotations(texts, tables["host"])
    for name in ("host", "device", "syncs", "memory"):
        _sort(tables, name)
    rows = [tables[t][c] for t in ("host", "device") for c in ("start", "end") if len(tables[t][c])]
    zero_us = min(int(times.min()) for times in rows) // 1000
    for table in tables.values():
        for column in ("start", "end", "time"):
            if column in table:
                table[column] -= zero_us * 1000
    base_ns, absolute = _base((columns.clock.base_us or 0) + zero_us, top)
    info = top.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    return Trace(
        source=source, names=texts, threads=_threads(columns), host=Host(**tables["host"]),
        device=Device(**tables["device"]), syncs=Syncs(**tables["syncs"]), memory=Memory(**tables["memory"]),
        collectives=Collectives(**tables["collectives"]), base_ns=base_ns, absolute=absolute,
        resolution_ns=1 if any((times % 1000).any() for times in rows) else 1000,
        rank=_rank(info, path), world_size=number(info.get("world_size"), None), properties=_properties(top),
        metadata=_metadata(top, columns), losses=columns.tally.losses(), notes=columns.tally.sentences())


def _texts(texts: list[str], tables: Mapping[str, Part]) -> tuple[str, ...]:
    """With names that nobody can read cut, but still told apart: names are searched many times."""
    long = [code for code, text in enumerate(texts) if len(text) > _LONGEST]
    if long:
        named = {code for table in ("host", "device", "syncs")
                 for code in np.unique(tables[table]["name"]).tolist()}
        texts = list(texts)
        for code in named.intersection(long):
            text = texts[code]
            texts[code] = f"{text[:_LONGEST]}... ({len(text)} characters, {zlib.crc32(text.encode()):08x})"
    return tuple(texts)


def _drop_absurd(tables: dict[str, Part], columns: Columns) -> None:
    """Times that are days away from nearly all others belong to no trace, and would stretch it over years."""
    starts = np.concatenate((tables["host"]["start"], tables["device"]["start"]))
    known = starts[starts != -1000 * (columns.clock.base_us or 0)]  # zero stands for "not known"
    if not len(known):
        return
    low, middle, high = np.percentile(known, (5, 50, 95), method="nearest")
    reach = max(_DAY, _SPANS * int(high - low))
    for name, table in tables.items():
        if name == "collectives":
            continue
        start = table["start" if "start" in table else "time"]
        good = (np.abs(start - middle) <= reach) & (table.get("end", start) - middle <= reach)
        _drop(tables, name, columns, good, "a time far from all others")


def _drop_scattered(tables: dict[str, Part], columns: Columns) -> None:
    """Rows all over thousands of devices, streams or threads are damage, and would cost a pass for each."""
    for name in ("host", "device", "syncs", "memory"):
        for column, most in _MOST.items():
            values = tables[name].get(column, np.zeros(0, np.int64))
            if len(np.unique(values)) <= most:
                continue
            _, place, count = np.unique(values, return_inverse=True, return_counts=True)
            kept = np.zeros(len(count), bool)
            kept[np.argsort(-count, kind="stable")[:most]] = True
            _drop(tables, name, columns, kept[place], f"not on one of the {most} {column}s with most events")


def _tell_devices(tables: dict[str, Part], columns: Columns) -> None:
    """Activities that name no device are of the first where no other is named, else of none that is known."""
    device = tables["device"]["device"]
    named = device >= 0
    if named.all():
        return
    if named.any():
        _drop(tables, "device", columns, named, "no device, where others have one")
    else:
        device[:] = 0
        columns.tally.notes.append("Activities of a device do not say which: they are taken as of number 0.")


def _drop(tables: dict[str, Part], name: str, columns: Columns, good: Flags, reason: str) -> None:
    if good.all():
        return
    table = tables[name]
    for row in np.flatnonzero(~good).tolist():
        columns.tally.lose(columns.names.texts[table["name"][row]] if "name" in table else "[memory]", reason)
    _take(tables, name, np.flatnonzero(good))


def _take(tables: dict[str, Part], name: str, rows: Ints) -> None:
    """Keep these rows of a table, in this order, and what collectives say about them."""
    rows_before = size(tables[name])
    for column, values in tables[name].items():  # one by one: old and new columns never stand side by side
        tables[name][column] = values[rows]
    collectives = tables["collectives"]
    if name in collectives and len(collectives[name]):
        place = np.full(rows_before + 1, NONE, np.int32)  # the last answers for NONE
        place[rows] = np.arange(len(rows), dtype=np.int32)
        collectives[name] = place[collectives[name]]
        kept = np.flatnonzero((collectives["host"] >= 0) | (collectives["device"] >= 0))
        for column, values in collectives.items():
            collectives[column] = values[kept]


def _sort(tables: dict[str, Part], name: str) -> None:
    """By start, of equal ones the longest first; of those the one that is outside by its kind or number."""
    table = tables[name]
    start = table["start" if "start" in table else "time"]
    order = np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else np.arange(len(start))
    if "end" in table:
        key = start[order]
        equal = np.concatenate(([False], key[1:] == key[:-1], [False]))
        tied = np.flatnonzero(equal[1:] | equal[:-1])
        if len(tied):
            rows = order[tied]
            inner = (table["external"][rows], _INNER[table["kind"][rows]]) if name == "host" else ()
            order[tied] = rows[np.lexsort((*inner, -table["end"][rows], start[rows]))]
    if (order[1:] < order[:-1]).any():
        _take(tables, name, order)


def _tell_annotations(texts: tuple[str, ...], host: Part) -> None:
    """In old spelling annotations are operators without `::`, not inside one, no autograd nodes."""
    old = host["kind"] == OLD_OPERATOR
    if not old.any():
        return
    plain = names.per_name(texts, host["name"], lambda t: "::" not in t and not _NODE.search(t)).astype(bool)
    annotation = old & plain
    host["kind"][old] = Kind.OPERATOR
    for thread in np.unique(host["thread"][annotation]).tolist():
        here = host["thread"] == thread
        rows = np.flatnonzero(annotation & here)
        annotation[rows] = ~_inside(host["start"], host["end"], rows, np.flatnonzero(old & ~plain & here))
    host["kind"][annotation] = Kind.ANNOTATION


def _inside(start: Ints, end: Ints, rows: Ints, operators: Ints) -> Flags:
    """Whether each row lies in one of the operators; ends may differ by the microsecond of the clock."""
    if not len(operators):
        return np.zeros(len(rows), bool)
    operators = operators[np.argsort(start[operators], kind="stable")]
    last = np.searchsorted(start[operators], start[rows], side="right") - 1
    reach = np.maximum.accumulate(end[operators])[np.maximum(last, 0)]
    return (last >= 0) & (start[rows] < reach) & (end[rows] <= reach + 1000)


def _base(base_us: int, top: Mapping[str, Any]) -> tuple[int, bool]:
    """The trace's zero in ns, and whether that is since the epoch. A clock that shows no time is left out."""
    stated = number(top.get("baseTimeNanoseconds"), 0)
    if base_us not in _EPOCH_US and stated // 1000 + base_us in _EPOCH_US:
        return stated + base_us * 1000, True
    return base_us * 1000 if abs(base_us) < _EPOCH_US.stop else 0, base_us in _EPOCH_US


def _threads(columns: Columns) -> tuple[Thread, ...]:
    labels = columns.labels
    return tuple(dataclasses.replace(thread, name=labels.get(("thread_name", lane), ""))
                 for lane, thread in zip(columns.threads.lanes, columns.threads.threads))


def _rank(info: Mapping[str, Any], path: str) -> int | None:
    rank: int | None = number(info.get("rank"), None)
    if rank is not None and rank >= 0:
        return rank
    found = _RANK.findall(path)
    return int(found[-1]) if found else None


def _properties(top: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Properties of each device by its id; entries without a usable one are left out."""
    given = top.get("deviceProperties")
    devices = [p for p in (given if isinstance(given, list) else ()) if isinstance(p, dict)]
    return {number(p.get("id")): p for p in devices if number(p.get("id")) >= 0}


def _metadata(top: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """What the file says beside its events, with the name of the process that has most threads in it."""
    result = {k: v for k, v in top.items() if k not in ("traceEvents", "deviceProperties")}
    named = [columns.labels["process_name", t.pid] for t in columns.threads.threads
             if ("process_name", t.pid) in columns.labels]
    if named:
        result.setdefault("process_name", max(named, key=named.count))
    return result


def _why_none(columns: Columns) -> str:
    tally = columns.tally
    if tally.events == 0:
        return "The profiler may have been stopped before its active steps."
    if tally.invalid or tally.unreadable or tally.unfinished:
        return " ".join(tally.sentences())
    return f"None of its {tally.events} entries is an event with a duration."


