"""How much of a GPU a kernel's launch configuration can fill. Definitions, section 8.

Kineto writes an occupancy of 0 for every kernel with more than 48 KiB of shared memory,
so it is worked out again here, by the rules of CUDA's own occupancy calculator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from profiler.trace.model import Codes, Ints, Kind, Trace

Floats: TypeAlias = NDArray[np.float64]

# By compute capability: threads, blocks and KiB of shared memory of a multiprocessor
# (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
_CAPABILITIES = {
    (5, 0): (2048, 32, 64), (5, 2): (2048, 32, 96), (5, 3): (2048, 32, 64),
    (6, 0): (2048, 32, 64), (6, 1): (2048, 32, 96), (6, 2): (2048, 32, 64),
    (7, 0): (2048, 32, 96), (7, 2): (2048, 32, 96), (7, 5): (1024, 16, 64),
    (8, 0): (2048, 32, 164), (8, 6): (1536, 16, 100), (8, 7): (1536, 16, 164), (8, 9): (1536, 24, 100),
    (9, 0): (2048, 32, 228), (10, 0): (2048, 32, 228), (10, 3): (2048, 32, 228), (11, 0): (1536, 24, 228),
    (12, 0): (1536, 24, 100), (12, 1): (1536, 24, 100),
}
_WARP = 32
_REGISTERS = 65536       # of a multiprocessor, in all of the table
_REGISTER_UNIT = 256     # registers are handed out to a warp in this many


@dataclass(frozen=True, slots=True)
class Limits:
    """What one multiprocessor of an NVIDIA GPU can hold."""

    warps: int
    blocks: int
    registers: int
    block_registers: int   # of one block
    partitions: int        # a warp's registers come from one of these parts of the multiprocessor
    shared: int            # bytes
    shared_reserved: int   # bytes that the system takes for each block
    shared_unit: int


def is_amd(properties: Mapping[str, Any]) -> bool:
    """Written by the ROCm profiler. The name can be empty; the warp is 64 wide on data-centre parts."""
    name = str(properties.get("name", ""))
    return (properties.get("warpSize") == 64 or "maxSharedMemoryPerMultiProcessor" in properties
            or name.startswith(("AMD", "Radeon", "gfx")))


def properties(trace: Trace, device: int) -> Mapping[str, Any]:
    """What the file says about a device; empty when it says nothing.

    A process may see devices under other ids than the profiler writes. When all devices of the
    file are of one kind, a device without properties of its own is of that kind too.
    """
    found = trace.properties.get(device)
    if found is not None:
        return found
    kinds = [{k: v for k, v in p.items() if k != "id"} for p in trace.properties.values()]
    return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else {}


def _whole(value: Any) -> int | None:
    """A positive whole number, or None: values of a file can be anything."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 1:
        return None
    return int(value)


def multiprocessors(properties: Mapping[str, Any]) -> int | None:
    """SMs or compute units of a device; None when the file does not say."""
    return _whole(properties.get("numSms"))


def limits(properties: Mapping[str, Any]) -> Limits | None:
    """None for other vendors' devices, unknown capabilities and files that say nothing."""
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    if not isinstance(major, int) or not isinstance(minor, int) or is_amd(properties):
        return None
    known = _CAPABILITIES.get((major, minor))
    if known is None:
        return None
    threads, blocks, kibibytes = known
    return Limits(
        warps=(_whole(properties.get("maxThreadsPerMultiprocessor")) or threads) // _WARP,
        blocks=blocks,
        registers=_whole(properties.get("regsPerMultiprocessor")) or _REGISTERS,
        block_registers=_whole(properties.get("regsPerBlock")) or _REGISTERS,
        partitions=2 if (major, minor) == (6, 0) else 4,
        shared=_whole(properties.get("sharedMemPerMultiprocessor")) or kibibytes * 1024,
        shared_reserved=1024 if major >= 8 else 0,
        shared_unit=128 if major >= 8 else 256)


def blocks_at_once(limits: Limits, block: Codes, registers: Codes, shared: Codes) -> Ints:
    """Blocks that one multiprocessor holds at a time: int64[n]; 0 where none fits or a value is missing.

    `block` in threads, `registers` a thread, `shared` in bytes a block.
    """
    known = (block > 0) & (registers > 0) & (shared >= 0)
    warps = -(-np.where(known, block, 1).astype(np.int64) // _WARP)
    of_warp = -(-np.where(known, registers, 1).astype(np.int64) * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = limits.registers // limits.partitions // of_warp * limits.partitions // warps
    # The check of one block assumes that all partitions are given the same.
    assumed = -(-warps // limits.partitions) * limits.partitions * of_warp
    by_registers = np.where(assumed > limits.block_registers, 0, by_registers)
    taken = -(-(np.where(known, shared, 0).astype(np.int64) + limits.shared_reserved) // limits.shared_unit)
    by_shared = np.where(taken > 0, limits.shared // np.maximum(taken * limits.shared_unit, 1), limits.blocks)
    fit = np.minimum(np.minimum(limits.warps // warps, limits.blocks), np.minimum(by_registers, by_shared))
    return np.where(known, fit, 0)


def sm_efficiency(trace: Trace) -> Floats:
    """Share of the multiprocessors that a kernel's grid reaches, at most 1: float64[n], NaN where unknown."""
    result = np.full(len(trace.device), np.nan)
    for one in np.unique(trace.device.device).tolist():
        count = multiprocessors(properties(trace, one))
        rows = (trace.device.device == one) & (trace.device.kind == Kind.KERNEL) & (trace.device.grid > 0)
        if count is not None:
            result[rows] = np.minimum(trace.device.grid[rows] / count, 1.0)
    return result


def occupancy(trace: Trace) -> Floats:
    """Resident warps over the most there can be, for each kernel by itself: float64[n], NaN where unknown."""
    device, result = trace.device, np.full(len(trace.device), np.nan)
    for one in np.unique(device.device).tolist():
        found = properties(trace, one)
        bounds, count = limits(found), multiprocessors(found)
        if bounds is None or count is None:
            continue
        rows = np.flatnonzero((device.device == one) & (device.kind == Kind.KERNEL) & (device.grid > 0))
        fit = blocks_at_once(bounds, device.block[rows], device.registers[rows], device.shared[rows])
        warps = -(-device.block[rows].astype(np.int64) // _WARP)
        share = np.minimum(device.grid[rows] / count, fit) * warps / bounds.warps
        result[rows] = np.where(fit > 0, np.minimum(share, 1.0), np.nan)
    return result
