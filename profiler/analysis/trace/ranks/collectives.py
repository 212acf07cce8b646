"""Communication as it ran on devices: one row a collective, with what the file says about it, or its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from profiler.analysis.trace.efficiency import dtypes
from profiler.analysis.trace.joined import Joined, take
from profiler.analysis.trace.memory.moments import climb
from profiler.trace import names
from profiler.trace.model import NONE, Codes, Ints, Kind, Trace


class Collective(IntEnum):
    """What is communicated, as nccl-tests names its programs."""

    UNKNOWN = 0
    ALL_REDUCE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    ALL_TO_ALL = 4
    BROADCAST = 5
    REDUCE = 6
    GATHER = 7
    SCATTER = 8
    SEND = 9
    RECV = 10
    SEND_RECV = 11
    BARRIER = 12


# The first that matches, in a name without case, spaces and underscores.
_KINDS = (
    (re.compile(r"reducescatter"), Collective.REDUCE_SCATTER),
    (re.compile(r"allreduce|crossdevicereduce"), Collective.ALL_REDUCE),
    (re.compile(r"allgather"), Collective.ALL_GATHER),
    (re.compile(r"all2all|alltoall"), Collective.ALL_TO_ALL),
    (re.compile(r"sendrecv"), Collective.SEND_RECV),
    (re.compile(r"broadcast"), Collective.BROADCAST),
    (re.compile(r"barrier"), Collective.BARRIER),
    (re.compile(r"scatter"), Collective.SCATTER),
    (re.compile(r"gather"), Collective.GATHER),
    (re.compile(r"recv"), Collective.RECV),
    (re.compile(r"send"), Collective.SEND),
    (re.compile(r"reduce"), Collective.REDUCE),
)
_SPACE = re.compile(r"[\s_]+")
# Every rank contributes and receives from every other: none can end before all have begun.
EVERYBODY = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL,
             Collective.BARRIER)
# No message has more elements and no group more ranks; the numbers of a damaged file can be any.
MOST, LARGEST = 1 << 50, 1 << 24
POINT_TO_POINT = (Collective.SEND, Collective.RECV, Collective.SEND_RECV)


def collective(name: str) -> Collective:
    """From a kernel ("ncclDevKernel_AllGather_RING_LL(...)"), an annotation ("nccl:all_gather") or an
    argument ("_allgather_base")."""
    text = _SPACE.sub("", name.split("(")[0].lower()).removeprefix("nccl:")
    for pattern, kind in _KINDS:
        if pattern.search(text):
            return kind
    return Collective.UNKNOWN


def bus_factor(kind: Collective, ranks: int) -> float | None:
    """Bus over algorithm bandwidth, as nccl-tests defines it; None when it cannot be told."""
    if kind in (Collective.BROADCAST, Collective.REDUCE, *POINT_TO_POINT):
        return 1.0
    if ranks < 1 or kind in (Collective.UNKNOWN, Collective.BARRIER):
        return None
    return (2.0 if kind == Collective.ALL_REDUCE else 1.0) * (ranks - 1) / ranks


@dataclass(frozen=True, slots=True)
class Executions:
    """Collectives on devices, n rows sorted by launch. NONE: not told."""

    start: Ints          # of the first kernel, ns
    end: Ints            # of the last kernel
    launched: Ints       # start of the launch call; the kernel's start without one
    row: Codes           # first row of Trace.device
    device: Codes
    stream: Ints
    kind: Ints           # Collective
    bytes: Ints          # size as nccl-tests counts it: the larger of what a rank holds before and after
    ranks: Ints          # in the group
    group: Codes         # number of the group's name in Trace.names
    members: Codes       # number of the text of its ranks in Trace.names
    sequence: Ints       # within the group

    def __len__(self) -> int:
        return len(self.start)


def executions(j: Joined) -> Executions:
    """Every communication kernel of the trace; kernels of one call on the host are one row."""
    trace, device = j.trace, j.trace.device
    rows = np.flatnonzero(j.communication).astype(np.int32)
    launch = j.launch[rows]
    around = _callers(j, launch)
    told = _told(j, rows, around)
    launched = np.where(launch >= 0, trace.host.start[launch], device.start[rows]) if len(trace.host) \
        else device.start[rows]
    # Without a word of its own a kernel is a part of the call around it.
    own = _first(trace.collectives.device, len(device))[rows] >= 0
    key = np.where((around >= 0) & ~own, around.astype(np.int64), -1 - np.arange(len(rows)))
    _, first, part = np.unique(np.stack((key, device.device[rows]), 1), axis=0, return_index=True,
                               return_inverse=True)
    part = part.reshape(-1)  # its shape differs between releases of numpy
    start = np.full(len(first), np.iinfo(np.int64).max)
    end = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(start, part, device.start[rows])
    np.maximum.at(end, part, device.end[rows])
    order = np.lexsort((start, launched[first]))
    first = first[order]
    kind, size, ranks, group, members, sequence = (column[first] for column in told)
    return Executions(start[order], end[order], launched[first], rows[first],
                      device.device[rows[first]], device.stream[rows[first]], kind, size, ranks,
                      group.astype(np.int32), members.astype(np.int32), sequence)


def _callers(j: Joined, launch: Codes) -> Codes:
    """For each launch the closest annotation or operator around it that is of a collective."""
    of_one = j.host_names(lambda name: name.lower().startswith(("nccl:", "record_param_comms"))).astype(bool)
    return climb(j.parent, launch, of_one & (j.trace.host.kind <= Kind.ANNOTATION))


def _first(rows: Codes, size: int) -> Codes:
    """Where each of `size` rows stands first in `rows`; NONE where it does not."""
    found = np.full(size, NONE, np.int32)
    at = np.flatnonzero(rows >= 0)[::-1]
    found[rows[at]] = at
    return found


def _told(j: Joined, rows: Codes, around: Codes) -> tuple[Ints, ...]:
    """kind, bytes, ranks, group, members, sequence of each communication kernel, from the closest source."""
    trace, table = j.trace, j.trace.collectives
    by_host = _first(table.host, len(trace.host))
    above = climb(j.parent, j.launch[rows], by_host >= 0)
    sources = (_first(table.device, len(trace.device))[rows], take(by_host, above))

    def pick(column: Ints | Codes) -> Ints:
        value = np.full(len(rows), NONE, np.int64)
        for source in sources if len(column) else ():
            value = np.where((value < 0) & (source >= 0), column[source], value)
        return value

    def named(codes: Ints | Codes, rule: Callable[[str], int], none: int = 0) -> Ints:
        return names.per_name(trace.names, codes.astype(np.int32), rule, none)

    kind = named(pick(table.name), collective)
    for column in (take(trace.host.name, around), trace.device.name[rows]):
        kind = np.where(kind == Collective.UNKNOWN, named(column, collective), kind)
    group, members, ranks = pick(table.group), pick(table.ranks), pick(table.group_size)
    ranks = np.where((ranks > 0) & (ranks < LARGEST), ranks, named(members, _count, NONE))
    if trace.world_size is not None:
        ranks = np.where((ranks < 1) & (group < 0), trace.world_size, ranks)  # the default group has all
    item = named(pick(table.dtype), dtypes.size, NONE)
    sent, received = (np.where((item > 0) & (count < MOST), count * item, NONE)
                      for count in (pick(table.elements_in), pick(table.elements_out)))
    dims = _sizes_of_dims(trace, around)
    sent = np.where((sent < 0) & (received < 0), dims, sent)
    return kind, _size(kind, sent, received, ranks), ranks, group, members, pick(table.sequence)


def _size(kind: Ints, sent: Ints, received: Ints, ranks: Ints) -> Ints:
    """The size that nccl-tests would print, bytes: of the gathered, the unscattered, the reduced buffer."""
    whole_after = np.isin(kind, (Collective.ALL_GATHER, Collective.GATHER))
    whole_before = np.isin(kind, (Collective.REDUCE_SCATTER, Collective.SCATTER))
    before, after = np.where(sent > 0, sent, NONE), np.where(received > 0, received, NONE)
    both = np.maximum(before, after)
    times = np.where(ranks > 0, ranks, NONE)
    gathered = np.where(after > before, after, np.where((before > 0) & (times > 0), before * times, NONE))
    scattered = np.where(before > after, before, np.where((after > 0) & (times > 0), after * times, NONE))
    # In a group of one nothing is larger than anything.
    gathered, scattered = np.where(times == 1, both, gathered), np.where(times == 1, both, scattered)
    plain = np.where(kind == Collective.ALL_TO_ALL, np.where(before > 0, before, after), both)
    return np.where(whole_after, gathered, np.where(whole_before, scattered, plain))


def _count(text: str) -> int:
    """How many ranks a list such as "[0, 1]" names; NONE when it is shortened or no list."""
    return len(dtypes.numbers(dtypes.decode(text)) or ()) or NONE


def _sizes_of_dims(trace: Trace, rows: Codes) -> Ints:
    """Bytes of the tensors that went into the calls `rows`, from their shapes; NONE where not told."""
    host, texts = trace.host, trace.names
    result = np.full(len(rows), NONE, np.int64)
    at = np.flatnonzero(rows >= 0)
    codes = np.stack((host.dims[rows[at]], host.types[rows[at]]), 1)
    pairs, part = np.unique(codes, axis=0, return_inverse=True)
    sizes = [dtypes.bytes_of(texts[dims], texts[types]) if min(dims, types) >= 0 else NONE
             for dims, types in pairs.tolist()]
    result[at] = np.array(sizes, np.int64)[part.reshape(-1)]
    return result
