"""Traces straight from rows, without a file: for tests that make many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints
from unittest import mock

import numpy as np

from profiler.analysis.trace.code import owners
from profiler.trace.model import NONE, Collectives, Device, Host, Kind, Memory, Syncs, Thread, Trace


@dataclass(frozen=True)
class H:
    """A row of a host thread."""

    kind: Kind
    name: str
    start: int
    end: int
    thread: int = 0
    correlation: int = NONE


@dataclass(frozen=True)
class D:
    """A row of a device."""

    kind: Kind
    name: str
    start: int
    end: int
    correlation: int = NONE
    device: int = 0
    stream: int = 7


@dataclass(frozen=True)
class S:
    """A row of category cuda_sync."""

    name: str
    start: int
    end: int
    correlation: int
    stream: int = 7
    device: int = 0


def op(name: str, start: int, end: int, thread: int = 0) -> H:
    return H(Kind.OPERATOR, name, start, end, thread)


def note(name: str, start: int, end: int, thread: int = 0) -> H:
    return H(Kind.ANNOTATION, name, start, end, thread)


def step(number: int, start: int, end: int, thread: int = 0) -> H:
    return note(f"ProfilerStep#{number}", start, end, thread)


def call(name: str, start: int, end: int, correlation: int = NONE, thread: int = 0) -> H:
    return H(Kind.RUNTIME, name, start, end, thread, correlation)


def kernel(start: int, end: int, correlation: int = NONE, device: int = 0, stream: int = 7,
           name: str = "gemm") -> D:
    return D(Kind.KERNEL, name, start, end, correlation, device, stream)


def copy(start: int, end: int, correlation: int = NONE, name: str = "Memcpy HtoD (Pageable -> Device)",
         device: int = 0, stream: int = 7) -> D:
    return D(Kind.MEMCPY, name, start, end, correlation, device, stream)


def trace(rows: Iterable[H | D | S]) -> Trace:
    """The trace of these rows, in the order that the model asks for; equal ones in the order given."""
    every = list(rows)
    names: dict[str, int] = {}
    host = [r for r in every if isinstance(r, H)]
    threads = max((r.thread for r in host), default=-1) + 1
    return Trace(
        source="built", host=_table(Host, host, names),
        device=_table(Device, [r for r in every if isinstance(r, D)], names),
        syncs=_table(Syncs, [r for r in every if isinstance(r, S)], names), memory=_table(Memory, [], names),
        collectives=_table(Collectives, [], names), names=tuple(names),
        threads=tuple(Thread(1, 100 + k) for k in range(threads)))


def _table(table: Any, rows: Sequence[Any], names: dict[str, int]) -> Any:
    rows = sorted(rows, key=lambda r: (r.start, -r.end))
    columns = {}
    for field, hint in get_type_hints(table).items():
        values = [getattr(r, field, NONE) for r in rows]
        if field == "name":
            values = [names.setdefault(text, len(names)) for text in values]
        columns[field] = np.array(values, get_args(get_args(hint)[1])[0])
    return table(**columns)


@contextmanager
def taken_as_deep(deep: bool) -> Iterator[None]:
    """Trees of any depth are gone through as those are that are too deep for their rows."""
    with mock.patch.object(owners, "_DEEP", -1 if deep else 10**9), mock.patch.object(owners, "_FEW", 10**9):
        yield
