"""Texts, threads and numbers of events as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from profiler.importers.kineto.repair import repair
from profiler.trace.model import NONE, Thread


class Names(dict[Any, int]):
    """Number of every text; what is no text gets that of what it is written as."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def __missing__(self, key: Any) -> int:
        text = "" if key is None else key if isinstance(key, str) else str(key)
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text.encode("utf-8", "replace").decode())  # lone surrogates are no text
        self[key] = number
        return number


class Values(dict[bytes, int]):
    """Number in `names` of a JSON value as `spell` writes it; NONE for an empty one."""

    def __init__(self, names: Names, spell: Callable[[Any], str]) -> None:
        super().__init__()
        self._names, self._spell = names, spell

    def __missing__(self, key: bytes) -> int:
        value = None
        for text in (key, repair(key).text):
            try:
                value = msgspec.json.decode(text)
                break
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                continue
        self[key] = self._names[self._spell(value)] if value else NONE
        return self[key]


def compact(value: Any) -> str:
    """As JSON without blanks, whatever the file's layout."""
    return msgspec.json.encode(value).decode()


def lines(value: Any) -> str:
    """A call stack, frames separated by ;"""
    return ";".join(map(str, value)) if isinstance(value, list) else str(value)


class Threads(dict[tuple[Any, Any], int]):
    """Number of every thread by (pid, tid) in any spelling."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[Thread] = []
        self.lanes: list[tuple[int | str, int | str]] = []  # their (pid, tid), numbers where they are such
        self._numbers: dict[tuple[int | str, int | str], int] = {}
        self._own: dict[Any, dict[Any, int]] = {}

    def __missing__(self, key: tuple[Any, Any]) -> int:
        pid, tid = self.canonical(key)
        code = self._numbers.get((pid, tid))
        if code is None:
            code = self._numbers[pid, tid] = len(self.threads)
            self.lanes.append((pid, tid))
            own = -2 - code  # no thread of an operating system has it
            self.threads.append(Thread(
                pid if isinstance(pid, int) else own, tid if isinstance(tid, int) else own,
                label=" ".join(v for v in (pid, tid) if isinstance(v, str))))
        self[key] = code
        return code

    def of(self, pid: Any) -> dict[Any, int]:
        """Numbers of the threads of one process by tid."""
        if pid not in self._own:
            self._own[pid] = _Own(self, pid)
        return self._own[pid]

    def canonical(self, key: tuple[Any, Any]) -> tuple[int | str, int | str]:
        """Numbers where the texts are such."""
        pid, tid = ("" if v is None else number(v, str(v)) for v in key)
        return pid, tid


class _Own(dict[Any, int]):
    def __init__(self, threads: Threads, pid: Any) -> None:
        super().__init__()
        self._threads, self._pid = threads, pid

    def __missing__(self, tid: Any) -> int:
        self[tid] = code = self._threads[self._pid, tid]
        return code


def number(value: Any, otherwise: Any = NONE) -> Any:
    """An integer from a number or its text, `otherwise` for anything else."""
    if isinstance(value, float | str | int) and not isinstance(value, bool):
        try:
            result = int(value)
            return result if -(2**63) <= result < 2**64 else otherwise
        except (ValueError, OverflowError):
            pass
    return otherwise


def integers(values: list[Any], dtype: DTypeLike = np.int64, otherwise: int = NONE) -> NDArray[Any]:
    """A column of numbers, NONE where one is missing, no number or too large."""
    try:
        column = np.array(values, dtype)
        if column.ndim == 1:  # lists of one length would be a table
            return column
    except (TypeError, ValueError, OverflowError):
        pass
    info = np.iinfo(np.dtype(dtype))
    found = (number(v, otherwise) for v in values)
    return np.array([v if info.min <= v <= info.max else otherwise for v in found], dtype)


def addresses(values: list[Any]) -> NDArray[np.int64]:
    """Unsigned 64-bit numbers as int64 of the same bits."""
    try:
        column = np.array(values, np.uint64)
        if column.ndim == 1:
            return column.view(np.int64)
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([number(v) % 2**64 for v in values], np.uint64).view(np.int64)


def products(values: list[Any], dtype: DTypeLike = np.int64) -> NDArray[Any]:
    """Product of each list of sizes, NONE where it is no list of positive numbers."""
    result = np.full(len(values), NONE, dtype)
    given = [i for i, v in enumerate(values) if v is not None]
    try:
        sizes = np.array([values[i] for i in given], np.int64)
        if sizes.ndim == 2 and sizes.shape[1] == 3 and sizes.min() > 0 and sizes.max() < 2**20:
            result[given] = sizes.prod(axis=1)
            return result
    except (TypeError, ValueError, OverflowError):
        pass
    result[given] = integers([_product(values[i]) for i in given], dtype)
    return result


def _product(sizes: Any) -> int:
    product = 1 if isinstance(sizes, list) and sizes else NONE
    for size in sizes if product > 0 else ():
        size = number(size, 0)
        product = product * size if size > 0 and product > 0 else NONE
    return product
