"""The tables of a trace as plain columns, while they are put together."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.trace.model import NONE, Collectives, Device, Host, Memory, Syncs

Part = dict[str, NDArray[Any]]  # some rows of a table by column; a column that is left out is NONE
TABLES: dict[str, type[Any]] = {
    "host": Host, "device": Device, "syncs": Syncs, "memory": Memory, "collectives": Collectives}
_DTYPES = {"Ints": np.int64, "Codes": np.int32, "Small": np.uint8}


def size(part: Part) -> int:
    return len(next(iter(part.values())))


def joined(table: str, parts: list[Part]) -> Part:
    """All rows with every column. The parts are used up, so that no column is there twice."""
    ends = np.cumsum([0, *(size(p) for p in parts)]).tolist()
    result: Part = {}
    for field in dataclasses.fields(TABLES[table]):
        column = np.empty(ends[-1], _DTYPES[str(field.type)])
        for part, start, end in zip(parts, ends, ends[1:]):
            column[start:end] = part.pop(field.name, NONE)
        result[field.name] = column
    return result
