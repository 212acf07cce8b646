"""When a device works, and at what. Definitions, section 3.1 to 3.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Flags, Ints, Kind
from profiler.trace.names import Copy

# Kinds of transfer; where two run at once the instant is the first one's.
TRANSFERS = {"h2d_pageable": (Copy.H2D_PAGEABLE,), "h2d_pinned": (Copy.H2D_PINNED,), "h2d": (Copy.H2D,),
             "d2h": (Copy.D2H_PAGEABLE, Copy.D2H_PINNED, Copy.D2H), "d2d": (Copy.D2D,), "p2p": (Copy.P2P,),
             "memset": (), "copy": (Copy.OTHER,)}


@dataclass(frozen=True)
class Busy:
    """Disjoint sets of time of one device, int64[n, 2] ns: each instant in at most one of them."""

    compute: Ints
    communication: Ints          # exposed: outside compute
    transfers: dict[str, Ints]   # exposed: outside both; by kind, "copy" where the kind is not told


def busy(j: Joined, device: int) -> Busy:
    """What `device` (an id) works at."""
    table = j.trace.device
    own = table.device == device

    def where(rows: Flags) -> Ints:
        return intervals.union(table.start[rows], table.end[rows])

    compute = j.computing(device)
    communication = where(own & j.communication)
    done = intervals.either(compute, communication)
    transfers = {}
    for name, copies in TRANSFERS.items():
        rows = table.kind == Kind.MEMSET
        if copies:
            rows = (table.kind == Kind.MEMCPY) & np.isin(j.copy, [int(copy) for copy in copies])
        times = where(own & rows)
        transfers[name] = intervals.subtract(times, done)
        done = intervals.either(done, times)
    return Busy(compute, intervals.subtract(communication, compute), transfers)
