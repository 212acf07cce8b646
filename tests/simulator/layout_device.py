"""The device rows of a trace file."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.simulator.operators import Gpu
from tests.simulator.timeline import Activity

if TYPE_CHECKING:
    from tests.simulator.layout import Writer


def write_devices(writer: Writer) -> None:
    """Rows of device activities, with the flows that end on them."""
    timeline = writer.timeline
    first = {call.correlation: 0 for call in timeline.calls}
    for number, a in enumerate(timeline.activities):
        call = timeline.calls[a.call] if a.call >= 0 else None
        device = a.device + writer.layout.first_device
        correlation = call.correlation if call else 2_000_000 + number
        tid = f"stream {a.stream}" if writer.layout.stream_text else a.stream
        args: dict[str, Any] = {
            "External id": writer.owner.get(a.call, 0),
            "device": device,
            "context": 1,
            "stream": a.stream,
            "correlation": correlation,
        }
        args |= facts(writer, a)
        category = {"compute": "kernel", "communication": "kernel", "memset": "gpu_memset"}.get(
            a.kind, "gpu_memcpy"
        )
        name = a.name
        if writer.layout.hip and category == "gpu_memcpy":
            name = "CopyHostToDevice" if a.kind.startswith("h2d") else "CopyDeviceToHost"
        writer.row(category, name, device, tid, a.start, a.end, args)
        if first.get(correlation) == 0:
            first[correlation] = 1
            writer.flow("f", correlation, "ac2g", "ac2g", device, tid, a.start)
    if writer.layout.annotations and not writer.layout.old:
        write_copies(writer)


def facts(writer: Writer, a: Activity) -> dict[str, Any]:
    if a.kind in ("compute", "communication"):
        kernel = a.info
        told: dict[str, Any] = {
            "queued": 0,
            "registers per thread": kernel.registers,
            "shared memory": kernel.shared,
            "grid": [kernel.grid, 1, 1],
            "block": [kernel.block, 1, 1],
            "est. achieved occupancy %": 0,
        }
        if kernel.communication and not writer.layout.old:
            told |= {
                "Collective name": "allreduce",
                "In msg nelems": kernel.elements,
                "Out msg nelems": kernel.elements,
                "Group size": writer.layout.ranks,
                "dtype": "BFloat16",
                "Process Group Name": "0",
            }
        return told
    size = a.info if a.kind == "memset" else a.info.bytes
    return {"bytes": size, "memory bandwidth (GB/s)": size / max(a.end - a.start, 1)}


def write_copies(writer: Writer) -> None:
    """An annotation's range on each stream that works for it."""
    starts = [call.start for call in writer.timeline.calls]
    by_call: dict[int, list[Activity]] = defaultdict(list)
    for a in writer.timeline.activities:
        by_call[a.call].append(a)
    for number, span in enumerate(writer.host):
        if span.category != "user_annotation":
            continue
        rows = range(bisect_right(starts, span.start - 1), bisect_right(starts, span.end))
        streams: dict[tuple[int, int], list[Activity]] = defaultdict(list)
        for row in rows:
            for a in by_call.get(row, ()):
                if a.kind in ("compute", "communication"):
                    streams[(a.device + writer.layout.first_device, a.stream)].append(a)
        for (device, stream), own in streams.items():
            writer.row(
                "gpu_user_annotation",
                span.name,
                device,
                stream,
                min(a.start for a in own),
                max(a.end for a in own),
                {"External id": number + 1},
            )


def properties(gpu: Gpu, device: int) -> dict[str, Any]:
    return {
        "id": device,
        "name": gpu.name,
        "totalGlobalMem": gpu.memory,
        "computeMajor": gpu.capability[0],
        "computeMinor": gpu.capability[1],
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": gpu.sms,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 167936,
    }
