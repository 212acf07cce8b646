"""Host and device time of nn.Modules, from the rows that the profiler writes when it records stacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code.grouping import summed
from profiler.analysis.trace.code.nesting import subtotals
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.joined import take
from profiler.trace.model import Flags


@dataclass(frozen=True, slots=True)
class Module:
    """A module in its place. Device times include the backward work of its operators, host times do not."""

    path: str
    name: str
    depth: int             # 0: outermost
    calls: int
    host_total_ns: int
    host_self_ns: int      # outside the modules that it calls
    device_total_ns: int
    device_self_ns: int    # launched by itself, not by the modules that it calls
    backward_ns: int       # of device_total_ns


def modules(owners: Owners, rows: Flags | None = None, calls: Flags | None = None) -> tuple[Module, ...]:
    """Every module, those with most device time first; empty where the trace has no module rows.

    `rows`: device rows to look at, `calls`: host rows to look at, bool[n] each; None: all.
    """
    found = owners.paths
    n = len(found.texts)
    if not n:
        return ()
    called = np.flatnonzero(found.code >= 0 if calls is None else (found.code >= 0) & calls)
    time = owners.host_time
    host_self = summed(found.code[called], time[called], n)
    host_total = host_self.copy()
    inner = np.flatnonzero(found.parent >= 0)
    np.subtract.at(host_self, found.parent[inner], host_total[inner])
    work = np.flatnonzero(take(found.code, owners.device_module) >= 0)
    if rows is not None:
        work = work[rows[work]]
    at = found.code[owners.device_module[work]]
    spent = owners.device_time[work]
    backward = owners.device_backward[work]
    own = summed(at, spent, n)
    total, back = (subtotals(found.parent, each) for each in (own, summed(at, spent * backward, n)))
    count = np.bincount(found.code[called], minlength=n)
    result = [
        Module(text, text.rsplit("/", 1)[-1], text.count("/"), int(count[i]), int(host_total[i]),
               max(int(host_self[i]), 0), int(total[i]), int(own[i]), int(back[i]))
        for i, text in enumerate(found.texts)]
    return tuple(sorted(result, key=lambda m: (-m.device_total_ns, -m.host_total_ns, m.path)))
