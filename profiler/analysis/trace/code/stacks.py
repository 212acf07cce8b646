"""Call stacks of host rows: what an operator carries, else the Python functions around it."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from profiler.analysis.trace.code.owners import above, levels, nearest
from profiler.analysis.trace.joined import Joined, take
from profiler.trace.model import NONE, Codes, Ints, Kind

FRAMES = 12  # of a stack of Python functions, from the innermost
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")  # of an object: every call may have another


def stacks(j: Joined, rows: Ints | Codes) -> list[str]:
    """The call stack of each host row: what the nearest operator carries, else Python functions around.

    Innermost frame first, frames separated by ";", objects without addresses; "" where nothing is known.
    """
    host, texts = j.trace.host, j.trace.names
    carrier = nearest(j.parent, host.stack >= 0)
    function = nearest(j.parent, host.kind == Kind.PYTHON)

    def one(row: int) -> str:
        if carrier[row] >= 0:
            return texts[host.stack[carrier[row]]]
        frames: list[str] = []
        while row >= 0 and function[row] >= 0 and len(frames) < FRAMES:
            at = int(function[row])
            frames.append(texts[host.name[at]])
            row = int(j.parent[at])
        return ";".join(frames)

    return [_ADDRESS.sub("", one(row)) for row in rows.tolist()]


def coded(j: Joined) -> tuple[tuple[str, ...], Ints]:
    """The texts of all call stacks of a trace, and an index into them for every host row: int64[n]."""
    host = j.trace.host
    path = _paths(j)
    carrier = nearest(j.parent, host.stack >= 0)
    path = np.where(carrier >= 0, len(host) + host.stack[carrier], path) if (carrier >= 0).any() else path
    _, first, place = np.unique(path, return_index=True, return_inverse=True)
    known: dict[str, int] = {}
    code = np.array([known.setdefault(text, len(known)) for text in stacks(j, first)], np.int64)
    return tuple(known), code[place.reshape(-1)]


def _paths(j: Joined) -> Ints:
    """A number below n for the Python functions around every host row: int64[n]; NONE without any."""
    host = j.trace.host
    function = host.kind == Kind.PYTHON
    result = np.full(len(host), NONE, np.int64)
    if not function.any():
        return result
    around = above(j.parent, function)
    tree = levels(around)
    known = 0
    for low, high in pairwise(tree.edges):  # functions of one depth below those of the depth before
        rows = tree.order[low:high]
        rows = rows[function[rows]]
        key = (take(result, around[rows]) + 1) * len(j.trace.names) + host.name[rows]
        distinct, place = np.unique(key, return_inverse=True)
        result[rows] = known + place.reshape(-1)
        known += len(distinct)
    return np.asarray(take(result, nearest(j.parent, function)))
