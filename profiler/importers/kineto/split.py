"""A large plain file read by several processes at once, each a stretch of it.

Only for files without a fault: at the first oddity the answer is None, and the file is
read in one go by whoever asked, who then says what is wrong with it.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from profiler.errors import TraceError
from profiler.importers.kineto import decode
from profiler.importers.kineto.columns import Columns
from profiler.importers.kineto.files import Document
from profiler.importers.kineto.reader import EXPECTED, Reader, usual_separator
from profiler.importers.kineto.source import BLOCK, Blocks, Source
from profiler.importers.kineto.tables import Part
from profiler.importers.kineto.tally import Tally
from profiler.importers.kineto.times import InexactTimes
from profiler.machine import cpu_quota
from profiler.trace.model import NONE

HOPELESS = 200_000  # events in a row, from the first one on, of which none can be used
LARGE = 32 << 20   # bytes from which the start of a process pays
PROCESSES = 4      # what they read must be brought together by one: more would gain little
_TRIES = 8         # places in one neighbourhood that are tried for a cut
_PLAIN = re.compile(rb"\s*[\[{]")
_TEXTS = {"name", "dims", "types", "stack", "concrete", "dtype", "group", "ranks"}


class Odd(Exception):
    """Something that only a reader of the whole file can judge."""


def fill(reader: Reader, columns: Columns, watch: Callable[[], None]) -> None:
    """All events of a document into columns. Raises TraceError where one after the other is none."""
    for events in reader:
        watch()
        lost = columns.tally.invalid + columns.tally.unreadable
        if lost > HOPELESS and not any(columns.rows.values()):
            raise TraceError(f"{reader.name} holds no events that can be read", EXPECTED)
        try:
            columns.add(events)
        except InexactTimes:
            reader.exact = True
            columns.add(reader.again())


def read(path: Path, source: Source, watch: Callable[[], None]) -> tuple[Columns, tuple[bytes, bytes]] | None:
    """The columns of a file and the text around its events; None where it is not for several processes.

    Processes are forked, which only a process of a single thread may do.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    cores = min(cores, int(cpu_quota() or cores))  # a container's share
    if cores < 2 or threading.active_count() > 1:
        return None
    children: list[_Child] = []
    try:
        source.size = path.stat().st_size
        if source.size < LARGE or not path.is_file():  # a pipe is not even opened: its text can be read once
            return None
        with path.open("rb", buffering=0) as file:
            if not _PLAIN.match(file.read(512)):
                return None
            cuts = _cuts(file, source.size, min(cores, PROCESSES))
        for i in range(1, len(cuts) - 1):
            children.append(_Child(path, cuts[i], cuts[i + 1], i == len(cuts) - 2))
        columns, (head, tail) = _stretch(path, 0, cuts[1], len(cuts) == 2, watch, source, len(cuts) - 1)
        for child in children:
            packed, tail = child.result()
            _append(columns, packed)
    except (Odd, OSError, ValueError, TraceError, *decode.Failure):
        source.read = 0
        return None
    finally:
        for child in children:
            child.end()
    return columns, (head, tail)


def _cuts(file: io.FileIO, size: int, count: int) -> list[int]:
    """Where stretches begin and end: in front of an event, as far as what follows tells."""
    cuts = [0]
    for i in range(1, count):
        at = max(size * i // count, cuts[-1] + 1)
        file.seek(at)
        text = file.read(BLOCK)
        separator = usual_separator(text)
        found, last = (text.find(separator), text.rfind(separator)) if separator else (-1, -1)
        for _ in range(_TRIES):
            if not 0 <= found < last:
                break
            start = text.index(b"{", found)
            try:
                decode.attempt(text[start:last + 1], Tally(), False)
            except decode.Failure:  # inside an event
                found = text.find(separator, found + 1)
            else:
                cuts.append(at + start)
                break
    return [*cuts, size]


def _blocks(path: Path, start: int, end: int, source: Source, others: int) -> Blocks:
    """The text of a stretch; what is read counts for so many stretches, read at the same time."""
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            source.read = min(source.size, source.read + len(block) * others)
            yield block


def _stretch(path: Path, start: int, end: int, last: bool, watch: Callable[[], None], source: Source,
             others: int = 1) -> tuple[Columns, tuple[bytes, bytes]]:
    """Columns of one stretch, and the text around the list of events. Raises Odd."""
    columns = Columns(Tally())
    blocks = _blocks(path, start, end, source, others)
    reader = Reader(Document(path.name, source, blocks), columns.tally, begun=start > 0, continued=not last)
    fill(reader, columns, watch)
    ended = bool(reader.around[1])
    if reader.salvaged or columns.halves or ended != last or columns.tally.truncated_at is not None:
        raise Odd
    return columns, reader.around


class _Child:
    """A process that reads one stretch and hands it over."""

    def __init__(self, path: Path, start: int, end: int, last: bool) -> None:
        self._from, to = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(to)
            return
        status = 1
        try:  # the copy: nothing of it may get back into the caller's code
            os.close(self._from)
            columns, around = _stretch(path, start, end, last, _ignore, Source(path.name))
            with os.fdopen(to, "wb") as pipe:
                _hand_over(pipe, columns.packed(), around[1])
            status = 0
        finally:
            os._exit(status)

    def result(self) -> tuple[dict[str, Any], bytes]:
        """What `packed` gave there, and the text after the list of events."""
        with os.fdopen(os.dup(self._from), "rb") as pipe:
            try:
                return _take_over(pipe)
            except (EOFError, msgspec.DecodeError) as error:
                raise Odd from error

    def end(self) -> None:
        """Also before it is done."""
        os.close(self._from)
        os.kill(self._pid, signal.SIGKILL)  # not waited for yet, so the number is still its own
        os.waitpid(self._pid, 0)


def _ignore() -> None:
    pass


class _Head(msgspec.Struct, array_like=True):
    """All that is handed over but the columns, which follow; `columns` are their names, types and lengths."""

    texts: list[str]
    lanes: list[tuple[int | str, int | str]]
    base_us: int | None
    processes: list[tuple[str, int | str, str]]
    threads: list[tuple[str, tuple[int | str, int | str], str]]
    tally: Tally
    columns: list[tuple[str, str, str, int]]
    tail: bytes


def _hand_over(pipe: BinaryIO, packed: dict[str, Any], tail: bytes) -> None:
    tables, labels = packed["tables"], packed["labels"]
    columns = [(table, column, values) for table, part in tables.items() for column, values in part.items()]
    head = msgspec.msgpack.encode(_Head(
        packed["texts"], packed["lanes"], packed["base_us"],
        [(kind, lane, text) for (kind, lane), text in labels.items() if not isinstance(lane, tuple)],
        [(kind, lane, text) for (kind, lane), text in labels.items() if isinstance(lane, tuple)],
        packed["tally"], [(table, column, v.dtype.str, len(v)) for table, column, v in columns], tail))
    pipe.write(len(head).to_bytes(8, "little") + head)
    for _, _, values in columns:
        pipe.write(np.ascontiguousarray(values).view(np.uint8).data)


def _take_over(pipe: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """EOFError or msgspec.DecodeError where the other process ended too soon."""
    head = msgspec.msgpack.decode(pipe.read(int.from_bytes(pipe.read(8), "little")), type=_Head)
    tables: dict[str, Part] = {}
    for table, column, dtype, length in head.columns:
        values = np.empty(length, dtype)
        if pipe.readinto(values.view(np.uint8)) != values.nbytes:  # type: ignore[attr-defined]
            raise EOFError
        tables.setdefault(table, {})[column] = values
    labels = {(kind, lane): text for kind, lane, text in [*head.processes, *head.threads]}
    return {"texts": head.texts, "lanes": head.lanes, "base_us": head.base_us, "tables": tables,
            "labels": labels, "tally": head.tally}, head.tail


def _append(columns: Columns, packed: dict[str, Any]) -> None:
    """Add what another process read, in this one's numbers of texts and threads and on its clock."""
    texts = np.array([*(columns.names[t] for t in packed["texts"]), NONE], np.int32)
    lanes = np.array([*(columns.threads[lane] for lane in packed["lanes"]), NONE], np.int32)
    if columns.clock.base_us is None:
        columns.clock.base_us = packed["base_us"]
    before = dict(columns.rows)
    shift = ((packed["base_us"] or 0) - (columns.clock.base_us or 0)) * 1000
    for table, part in packed["tables"].items():
        _translate(part, texts, lanes, shift)
        if table == "collectives":
            for rows in ("host", "device"):
                part[rows] = np.where(part[rows] >= 0, part[rows] + before[rows], NONE)
        columns.append(table, part)
    columns.labels |= packed["labels"]
    columns.tally.add(packed["tally"])


def _translate(part: Part, texts: Any, lanes: Any, shift: int) -> None:
    for column, values in part.items():
        if column in _TEXTS:
            part[column] = texts[values]
        elif column == "thread":
            part[column] = lanes[values]
        elif column in ("start", "end", "time"):
            values += shift
