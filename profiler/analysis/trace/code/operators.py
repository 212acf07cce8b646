"""Operators by name, input shapes and call stack: calls, host time, device time, shares, matrix units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code import stacks
from profiler.analysis.trace.code.grouping import Rows, coded, extremes, summed
from profiler.analysis.trace.code.nesting import inside_own_group, subtotals
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device import tensor_cores
from profiler.analysis.trace.joined import take
from profiler.trace.model import NONE, Codes, Flags, Ints

KEYS = ("name", "shapes", "types", "stack")


@dataclass(frozen=True, slots=True)
class Operator:
    """Operators with one key. Total is with what they call, self without.

    A call inside another one of the same key is part of it, and adds neither to calls nor to totals, so
    that these are never longer than the time that passed. Host self time is outside nested operators and
    runtime calls. Device time is of every kernel, copy and memset launched. Shares are of the self times
    of all operators looked at, in [0, 1].
    """

    key: tuple[str, ...]
    calls: int
    host_total_ns: int
    host_mean_ns: float             # of a call, with what it calls
    host_min_ns: int
    host_max_ns: int
    host_self_ns: int
    host_share: float
    device_total_ns: int
    device_self_ns: int
    device_share: float
    device_activities: int          # launched by themselves
    tensor_cores: float | None      # share of device self time on matrix units; None without device time
    tensor_cores_possible: bool     # an operator that could use them


def operators(owners: Owners, *keys: str, rows: Flags | None = None) -> tuple[Operator, ...]:
    """Operators with equal values of `keys` (of KEYS), most device time first, then most host time.

    `rows`: host rows to look at, bool[n].
    """
    trace = owners.trace
    chosen = np.flatnonzero(owners.is_operator if rows is None else owners.is_operator & rows)
    if not len(chosen):
        return ()
    host = trace.host
    columns: dict[str, Rows] = {"name": host.name, "shapes": host.dims, "types": host.types}
    names = dict.fromkeys(columns, trace.names)
    if "stack" in keys:
        names["stack"], columns["stack"] = stacks.coded(owners.joined)
    first, code = coded([columns[key][chosen] for key in keys or ("name",)])
    first, n = chosen[first], len(first)
    group = np.full(len(trace.host), NONE, np.int32)
    group[chosen] = code
    outermost = chosen[~inside_own_group(owners.enclosing, host.thread, group, chosen)]

    of_call, took = group[outermost], owners.host_time[outermost]
    calls, total = np.bincount(of_call, minlength=n), summed(of_call, took, n)
    low, high = extremes(of_call, took, n)
    own = summed(code, owners.self_time[chosen], n)
    device = _device(owners, group, outermost, n)
    on_host, on_device = max(int(own.sum()), 1), max(int(device.own.sum()), 1)
    possible = [tensor_cores.eligible(trace.names[c]) for c in host.name[first].tolist()]
    texts = list(zip(*([names[key][v] if v >= 0 else "" for v in columns[key][first].tolist()]
                       for key in keys or ("name",)), strict=True))
    order = sorted(range(n), key=lambda i: (-device.total[i], -total[i], texts[i]))
    return tuple(
        Operator(texts[i], int(calls[i]), int(total[i]), float(total[i] / calls[i]), int(low[i]),
                 int(high[i]), int(own[i]), float(own[i] / on_host), int(device.total[i]), int(device.own[i]),
                 float(device.own[i] / on_device), int(device.count[i]),
                 float(device.tensor[i] / device.own[i]) if device.own[i] else None, possible[i])
        for i in order)


@dataclass(frozen=True, slots=True)
class _Device:
    total: Ints
    own: Ints
    count: Ints
    tensor: Ints


def _device(owners: Owners, group: Codes, outermost: Ints, n: int) -> _Device:
    """Device time behind each group, whose total is that of its outermost rows: int64[n] each."""
    trace = owners.trace
    time = owners.device_time
    at = owners.device_operator
    mine = take(group, at)
    rows = np.flatnonzero(mine >= 0)
    own, count = summed(mine[rows], time[rows], n), np.bincount(mine[rows], minlength=n)
    tensor = summed(mine[rows], (time * owners.matrix_units)[rows], n)
    known = at >= 0
    spent = subtotals(owners.enclosing, summed(at[known], time[known], len(trace.host)))
    return _Device(summed(group[outermost], spent[outermost], n), own, count, tensor)
