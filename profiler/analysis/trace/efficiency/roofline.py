"""Roofline points: work, time and bytes of equal operators, beside what their device could do at most."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device import occupancy
from profiler.analysis.trace.efficiency import peaks
from profiler.analysis.trace.efficiency.work import TF32, Counted
from profiler.trace.model import Flags

COMPUTE = "compute"
MEMORY = "memory"


@dataclass(frozen=True)
class Point:
    """Operators of one name, of equal shapes, types and settings, on one device.

    `bytes` is every operand and result once, which is the least that could be moved: the true
    intensity may be lower. `flops` is that of the direct method: a convolution by Winograd's does
    less, and its share may exceed 1. What is not known is None.
    """

    operator: str
    family: str
    dtype: str
    shapes: str                 # "Input Dims" as JSON text
    device: int
    count: int
    flops: int                  # executed, of all
    bytes: int | None           # of all
    time_ns: int                # of their kernels, all
    tflops: float               # achieved, TFLOP/s
    gbs: float | None           # achieved at least, GB/s
    intensity: float | None     # FLOP/byte
    bound: str | None           # COMPUTE or MEMORY: what limits at this intensity
    attainable: float | None    # TFLOP/s at this intensity
    share: float | None         # achieved over attainable


@dataclass(frozen=True)
class Roof:
    """The limits of one device for one data type, with their source."""

    device: int
    name: str
    dtype: str
    tflops: float | None
    gbs: float | None
    source: str                 # the reason, when the limits are not known


@dataclass(frozen=True)
class Roofline:
    points: tuple[Point, ...]   # longest first
    roofs: tuple[Roof, ...]


def roofline(owners: Owners, counted: Counted, keep: Flags | None = None) -> Roofline:
    """Points of operators whose kernels are known; `keep` bool[n] beside `counted` looks at some of them."""
    trace, host = owners.trace, owners.trace.host
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    wanted = (counted.time > 0) & (counted.executed > 0) & (True if keep is None else keep)
    for k in np.flatnonzero(wanted).tolist():
        row = counted.row[k]
        codes = (host.name[row], host.dims[row], host.types[row], host.concrete[row], counted.device[k])
        groups[(*map(int, codes), int(counted.dtype[k] == TF32))].append(k)
    roofs: dict[tuple[int, str], Roof] = {}
    points = []
    for key, members in groups.items():
        device, first = key[4], members[0]
        roof = roofs.setdefault((device, counted.dtype[first]), _roof(owners, device, counted.dtype[first]))
        shapes = trace.names[key[1]] if key[1] >= 0 else ""
        points.append(_point(counted, members, trace.names[key[0]], shapes, roof))
    return Roofline(tuple(sorted(points, key=lambda point: -point.time_ns)), tuple(roofs.values()))


def _point(counted: Counted, members: list[int], name: str, shapes: str, roof: Roof) -> Point:
    flops, time = sum(counted.executed[members].tolist()), sum(counted.time[members].tolist())
    sizes = counted.bytes[members]
    size = sum(sizes.tolist()) if (sizes > 0).all() else None
    intensity = flops / size if size else None
    bound = attainable = None
    if intensity is not None and roof.tflops is not None and roof.gbs is not None:
        slope = intensity * roof.gbs / 1e3
        bound = COMPUTE if slope >= roof.tflops else MEMORY
        attainable = min(roof.tflops, slope)
    tflops = flops / time / 1e3
    return Point(name, counted.family[members[0]], roof.dtype, shapes, roof.device, len(members), flops, size,
                 time, tflops, size / time if size else None, intensity, bound, attainable,
                 tflops / attainable if attainable else None)


def _roof(owners: Owners, device: int, dtype: str) -> Roof:
    known = peaks.peak(occupancy.properties(owners.trace, device))
    if known.peak is None:
        return Roof(device, known.name, dtype, None, None, known.reason)
    limit = known.peak.tflops.get(dtype)
    source = known.peak.source
    if limit is None:
        source += f" has no peak for {dtype or 'an unknown type'}"
    return Roof(device, known.name, dtype, limit, known.peak.bandwidth, source)
