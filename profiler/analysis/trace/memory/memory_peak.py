"""What was live when memory peaked: the operators, modules and stacks behind it, and what it is for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code.owners import MODULE, Owners
from profiler.analysis.trace.code.stacks import stacks
from profiler.analysis.trace.joined import Joined, take
from profiler.analysis.trace.memory.memory import Timeline
from profiler.analysis.trace.memory.moments import climb, highest, innermost
from profiler.analysis.trace.steps import Steps
from profiler.trace import names
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind
from profiler.trace.names import Copy

# What an allocation is for, as far as its life tells.
TEMPORARY = "temporary"          # gone before the outermost operator around it ends
INPUT = "input"                  # by an operator that copies from the host
ACTIVATION = "activation"        # made in forward, freed by backward; without a backward: freed later on
GRADIENT = "gradient"            # made in backward, and outlives it
OPTIMIZER_STATE = "optimizer state"  # made in an optimizer's step, and outlives it
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Live:
    """Allocations that were live at the peak, of one origin. Bytes."""

    operator: str        # empty: outside any operator
    top: str             # the outermost operator around it
    module: str
    stack: str           # innermost frame first, frames separated by ;
    category: str
    bytes: int
    count: int


@dataclass(frozen=True)
class Peak:
    """The moment at which most was allocated on one device."""

    device: str
    time_ns: int
    allocated: int
    known: bool              # False: counted from the lowest point of the trace, a lower bound
    reserved: int | None
    before: int | None       # of it, allocated before the trace (weights, ...); None: not known
    live: tuple[Live, ...]   # largest first; empty when the trace gives no addresses
    categories: dict[str, int]
    note: str = ""


def peak(j: Joined, owners: Owners, steps: Steps, line: Timeline) -> Peak:
    """What is behind the peak of one device's timeline."""
    table = j.trace.memory
    at = line.peak
    allocated, time = int(line.allocated[at]), int(line.time[at])
    reserved = int(line.reserved[at])
    told = (line.name, time, allocated, line.known, reserved if reserved >= 0 else None)
    if (table.address[line.rows] == NONE).all() or not table.address[line.rows].any():
        return Peak(*told, None, (), {}, "the trace has no addresses: what was live cannot be told")
    life = _lives(table.address[line.rows], table.bytes[line.rows])
    live = np.flatnonzero((table.bytes[line.rows] > 0) & (np.arange(len(line.rows)) <= at) & (life > at))
    rows, freed = line.rows[live], life[live]
    before = allocated - int(table.bytes[rows].sum())
    free_rows = np.where(freed < len(line.rows), line.rows[np.minimum(freed, len(line.rows) - 1)], NONE)
    around = innermost(j, table.thread[rows], table.time[rows])
    kind = _categories(j, owners, steps, rows, free_rows, around)
    found = _grouped(j, owners, around, kind, table.bytes[rows])
    sums: dict[str, int] = defaultdict(int)
    for row in found:
        sums[row.category] += row.bytes
    return Peak(*told, before if line.known and before >= 0 else None, found,
                dict(sorted(sums.items(), key=lambda item: -item[1])))


def _lives(address: Ints, size: Ints) -> Ints:
    """For each event the next one at its address (its free, or a new allocation whose free was missed)."""
    n = len(address)
    order = np.lexsort((np.arange(n), address))
    following = np.full(n, n, np.int64)
    same = address[order[1:]] == address[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following


def _categories(j: Joined, owners: Owners, steps: Steps, rows: Ints, freed: Ints, around: Codes) -> list[str]:
    """What each allocation is for."""
    table, host, up = j.trace.memory, j.trace.host, owners.enclosing
    node = highest(up, take(owners.operator, around), j.backward)
    optimizer = climb(j.parent, around, (host.kind == Kind.ANNOTATION)
                      & j.host_names(names.is_optimizer).astype(bool))
    freed_around = np.full(len(rows), NONE, np.int32)
    has = freed >= 0
    freed_around[has] = innermost(j, table.thread[freed[has]], table.time[freed[has]])
    by_backward = has & (freed_around >= 0 if not j.backward.any() else
                         climb(up, take(owners.operator, freed_around), j.backward) >= 0)
    by_backward &= (around >= 0)
    gone = np.where(has, table.time[np.maximum(freed, 0)], np.iinfo(np.int64).max)
    top = take(owners.top, around)
    ends = _backward_ends(j, steps)
    step = steps.at(table.time[rows])
    backward_end = np.where(step >= 0, ends[step], ends[-1])
    copied = _copying(j, owners)

    def outlives(row: Codes) -> Flags:
        return (row >= 0) & (gone > host.end[np.maximum(row, 0)])

    kind = np.full(len(rows), UNKNOWN, dtype=object)
    if not len(host):
        return kind.tolist()
    kind[(node < 0) & (optimizer < 0) & by_backward] = ACTIVATION
    kind[(node >= 0) & (gone > backward_end)] = GRADIENT
    kind[outlives(optimizer)] = OPTIMIZER_STATE
    kind[(top >= 0) & copied[np.maximum(top, 0)] & (node < 0) & (optimizer < 0)] = INPUT
    kind[(top >= 0) & ~outlives(top)] = TEMPORARY
    return kind.tolist()


def _backward_ends(j: Joined, steps: Steps) -> Ints:
    """End of the last autograd node of each step, and of the whole trace as the last entry."""
    host = j.trace.host
    rows = np.flatnonzero(j.backward)
    ends = np.full(len(steps) + 1, np.iinfo(np.int64).max)
    step = steps.at(host.start[rows])
    for k in np.unique(step[step >= 0]).tolist():
        ends[k] = host.end[rows[step == k]].max()
    if len(rows):
        ends[-1] = host.end[rows].max()
    return ends


def _copying(j: Joined, owners: Owners) -> Flags:
    """Host rows that are outermost operators of a copy to the device."""
    result = np.zeros(len(j.trace.host), np.bool_)
    copies = np.flatnonzero(np.isin(j.copy, (Copy.H2D, Copy.H2D_PAGEABLE, Copy.H2D_PINNED)))
    tops = take(owners.top, j.launch[copies])
    result[tops[tops >= 0]] = True
    return result


def _grouped(j: Joined, owners: Owners, around: Codes, kind: list[str], size: Ints) -> tuple[Live, ...]:
    texts, host = j.trace.names, j.trace.host
    operator, top = take(owners.operator, around), take(owners.top, around)
    module = take(owners.module, around)
    distinct = np.unique(around[around >= 0])
    stack = dict(zip(distinct.tolist(), stacks(j, distinct), strict=True))
    sums: dict[tuple[str, str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])

    def name(row: int) -> str:
        return texts[host.name[row]] if row >= 0 else ""

    for k in range(len(around)):
        row = int(around[k])
        key = (name(operator[k]), name(top[k]), name(module[k]).removeprefix(MODULE), stack.get(row, ""),
               kind[k])
        sums[key][0] += int(size[k])
        sums[key][1] += 1
    found = [Live(*key, bytes=total, count=count) for key, (total, count) in sums.items()]
    return tuple(sorted(found, key=lambda row: (-row.bytes, row.operator, row.stack)))
