"""Which traces are profiler windows of one process."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from profiler.trace.merge import disjoint
from profiler.trace.model import NONE, Trace


def of_processes(traces: Sequence[Trace], known: Sequence[Hashable] | None = None) -> list[list[int]]:
    """Numbers of the traces by process, in the order in which each process is met first.

    `known`: the process of each trace where a recording tells, else None. Where nothing tells, traces are
    of one process when rank, process id and devices are the same, and they do not overlap in time.
    """
    groups: dict[Hashable, list[int]] = {}
    for k, trace in enumerate(traces):
        told = known[k] if known is not None else None
        groups.setdefault(("told", told, trace.rank) if told is not None else _key(k, trace), []).append(k)
    found: list[list[int]] = []
    for key, group in groups.items():
        recorded = isinstance(key, tuple) and key[0] == "told"
        whole = recorded or disjoint([traces[k] for k in group])
        found += [group] if whole else [[k] for k in group]
    return sorted(found)


def pid(trace: Trace) -> int:
    """Process id of the thread with most host events; NONE without any."""
    if not len(trace.host):
        return NONE
    return trace.threads[int(np.bincount(trace.host.thread).argmax())].pid


def _key(k: int, trace: Trace) -> Hashable:
    own = pid(trace)
    if own == NONE:
        return ("alone", k)
    return (trace.rank, own, tuple(sorted((d, str(p.get("name"))) for d, p in trace.properties.items())))
