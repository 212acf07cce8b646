"""The operators of a trace whose work their shapes tell, each counted once, with the kernels that did it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code.grouping import summed
from profiler.analysis.trace.code.nesting import subtotals
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device import occupancy, tensor_cores
from profiler.analysis.trace.efficiency import dtypes, flops
from profiler.analysis.trace.joined import take
from profiler.analysis.trace.memory.moments import climb
from profiler.trace.model import NONE, Codes, Flags, Ints, Kind

TF32 = "tf32"
# Place of the gradient among the arguments; image and weight are the other of the first two, and the third.
_BACKWARDS = {"aten::convolution_backward": 0, "aten::cudnn_convolution_backward": 1,
              "aten::miopen_convolution_backward": 1}


@dataclass(frozen=True)
class Counted:
    """n operators, no one inside another, in order of time. See `flops` for the two counts."""

    row: Codes              # of Trace.host
    model: Ints             # FLOPs; 0 where forward was done again for backward
    executed: Ints          # FLOPs
    bytes: Ints             # NONE where not told
    family: tuple[str, ...]
    dtype: tuple[str, ...]  # fp32 on matrix units is tf32
    time: Ints              # sum of the kernels that it launched, ns; 0 without any
    device: Codes           # of these kernels; NONE without any
    again: Flags            # forward that was done again (activation checkpointing)
    silent: int             # operators of such kinds whose shapes do not tell
    share: float            # of the time of compute kernels that is theirs

    def __len__(self) -> int:
        return len(self.row)


def counted(owners: Owners) -> Counted:
    """Matrix products, convolutions and attention. Of operators inside each other the innermost known one."""
    j, trace, host = owners.joined, owners.trace, owners.trace.host
    asks = (host.kind == Kind.OPERATOR) & j.host_names(lambda name: name in flops.FORMULAS).astype(bool)
    found = _works(owners, np.flatnonzero(asks))
    known = np.zeros(len(host), np.bool_)
    known[list(found)] = True
    over = climb(owners.enclosing, owners.enclosing[known], known)
    leaf = known.copy()
    leaf[over[over >= 0]] = False
    rows = np.flatnonzero(leaf).astype(np.int32)
    works = [found[row] for row in rows.tolist()]
    owner = climb(owners.enclosing, take(owners.operator, j.launch), leaf)
    kernels = np.flatnonzero((owner >= 0) & j.compute)
    took = trace.device.end - trace.device.start
    time = summed(owner[kernels], took[kernels], len(host))[rows]
    device = np.full(len(host), NONE, np.int32)
    device[owner[kernels]] = trace.device.device[kernels]
    matrix = np.zeros(len(host), np.bool_)
    # AMD's matrix cores take fp32 as it is.
    if not occupancy.is_amd(occupancy.properties(trace, j.main_device)):
        matrix[owner[kernels[tensor_cores.used(owners)[kernels]]]] = True
    again = _again(owners, rows)
    model = np.array([work.model for work in works], np.int64)
    all_time = int(took[j.compute].sum())
    return Counted(rows, np.where(again, 0, model), np.array([work.executed for work in works], np.int64),
                   np.array([NONE if work.bytes is None else work.bytes for work in works], np.int64),
                   tuple(work.family for work in works),
                   tuple(TF32 if work.dtype == "fp32" and matrix[row] else work.dtype
                         for work, row in zip(works, rows.tolist(), strict=True)),
                   time, device[rows], again, _silent(owners, asks, known),
                   float(time.sum() / all_time) if all_time else 0.0)


def _works(owners: Owners, rows: Codes | Ints) -> dict[int, flops.Work]:
    """Work by host row, where it can be told; worked out once for equal arguments."""
    trace, host = owners.trace, owners.trace.host
    results = _results(owners)
    parts = _parts(owners)
    seen: dict[tuple[int | None, ...], flops.Work | None] = {}
    found = {}
    keys = zip(*(column[rows].tolist() for column in (host.name, host.dims, host.types, host.concrete)),
               strict=True)
    for row, codes in zip(rows.tolist(), keys, strict=True):
        key = (*codes, parts.get(row))
        if key not in seen:
            dims, types, concrete = (dtypes.decode(trace.names[code]) if code >= 0 else []
                                     for code in codes[1:])
            out = results.get((str(dims[0]), str(dims[1]))) if len(dims) > 1 else None
            call = flops.Call(dims, types, concrete, out, parts.get(row))
            seen[key] = flops.work(trace.names[codes[0]], call)
        work = seen[key]
        if work is not None:
            found[row] = work
    return found


def _results(owners: Owners) -> dict[tuple[str, str], flops.Shape]:
    """Shapes that convolutions result in, by those of image and weight, as backward shows them.

    Older files do not tell strides and paddings. A pair of shapes with several results is left out.
    """
    trace, host = owners.trace, owners.trace.host
    places = owners.joined.host_names(lambda name: _BACKWARDS.get(name, NONE), NONE)
    found: dict[tuple[str, str], flops.Shape | None] = {}
    for code, grad in {(int(host.dims[row]), int(places[row])) for row in np.flatnonzero(places >= 0)}:
        dims = dtypes.decode(trace.names[code]) if code >= 0 else []
        out = dtypes.numbers(dims[grad]) if len(dims) > 2 else None
        if out:
            pair = (str(dims[1 - grad]), str(dims[2]))
            found[pair] = out if found.get(pair, out) == out else None
    return {pair: out for pair, out in found.items() if out}


def _parts(owners: Owners) -> dict[int, int]:
    """For operators that older files show with their parts: how many gradients they compute."""
    j, host = owners.joined, owners.trace.host
    part = j.host_names(lambda name: name.endswith(("_backward_input", "_backward_weight"))).astype(bool)
    over = take(j.parent, np.flatnonzero(part & (host.kind == Kind.OPERATOR)).astype(np.int32))
    rows, count = np.unique(over[over >= 0], return_counts=True)
    return dict(zip(rows.tolist(), count.tolist(), strict=True))


def _again(owners: Owners, rows: Codes) -> Flags:
    """Operators that ran forward inside a backward node: with gradients on, as only forward is.

    Such an operator, or one around it below the node, has a sequence number of its own.
    """
    host, up = owners.trace.host, owners.enclosing
    node = owners.joined.backward | owners.backward
    forward = (host.kind == Kind.OPERATOR) & ~node & (host.sequence >= 0) & (host.forward_thread <= 0)
    return climb(up, take(up, climb(up, rows, forward)), node) >= 0


def _silent(owners: Owners, asks: Flags, known: Flags) -> int:
    """Operators that ask for work which neither they, nor any around or inside them, tell."""
    up = owners.enclosing
    told = subtotals(up, known) > 0
    rows = np.flatnonzero(asks & ~told).astype(np.int32)
    alone = np.zeros(len(known), np.bool_)
    alone[rows[climb(up, rows, known) < 0]] = True
    return int((climb(up, up[alone], alone) < 0).sum())
