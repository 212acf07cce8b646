"""Traces of torch.profiler (Kineto's form of Chrome's), plain or compressed, of one rank or several."""

from __future__ import annotations

import gzip
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from profiler.errors import TraceError
from profiler.trace.model import (
    NONE,
    Collectives,
    Device,
    Host,
    Kind,
    Memory,
    Syncs,
    Thread,
    Trace,
)
from profiler.trace.names import step_number

_KINDS = {"cpu_op": Kind.OPERATOR, "operator": Kind.OPERATOR, "user_annotation": Kind.ANNOTATION,
          "python_function": Kind.PYTHON, "cuda_runtime": Kind.RUNTIME, "runtime": Kind.RUNTIME,
          "cuda_driver": Kind.DRIVER, "overhead": Kind.OVERHEAD, "kernel": Kind.KERNEL,
          "gpu_memcpy": Kind.MEMCPY, "memcpy": Kind.MEMCPY, "gpu_memset": Kind.MEMSET, "memset": Kind.MEMSET}


class Texts(dict[str, int]):
    def __missing__(self, key: str) -> int:
        self[key] = len(self)
        return self[key]


def load(path: Path) -> list[Trace]:
    """Every process in a file or a tar of files."""
    if path.name.endswith((".tar.gz", ".tar")):
        with tarfile.open(path) as tar:
            return [_trace(f"{path.name}:{m.name}", tar.extractfile(m).read())  # type: ignore[union-attr]
                    for m in sorted(tar.getmembers(), key=lambda m: m.name) if m.isfile()]
    data = path.read_bytes()
    return [_trace(path.name, gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)]


def _number(value: Any, default: int = NONE) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return default


def _trace(source: str, data: bytes) -> Trace:
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise TraceError(f"{source} is no JSON: {error}") from error
    events = document["traceEvents"]
    names, host, device, syncs, memory = Texts(), [], [], [], []
    threads: dict[tuple[Any, Any], int] = {}
    stamps = [e["ts"] for e in events if e.get("ph") == "X"]
    base = int(min(map(float, stamps))) if stamps else 0
    whole = all(float(s).is_integer() for s in stamps[:1000])

    def ns(value: Any) -> int:
        if isinstance(value, int):
            return (value - base) * 1000
        return round((float(value) - base) * 1000)

    for e in events:
        args, cat, ph = e.get("args") or {}, str(e.get("cat", "")).lower(), e.get("ph")
        if ph == "i" and e.get("name") == "[memory]":
            lane = threads.setdefault((e.get("pid"), e.get("tid")), len(threads))
            memory.append((ns(e["ts"]), lane, _number(args.get("Device Type")), _number(args.get("Device Id")),
                           _number(args.get("Bytes")), 0, _number(args.get("Total Allocated")),
                           _number(args.get("Total Reserved"))))
        if ph != "X" or cat in ("trace", "gpu_user_annotation"):
            continue
        t0 = ns(e["ts"])
        t1 = ns(float(e["ts"]) + float(e.get("dur", 0))) if isinstance(e["ts"], str) else t0 + round(e.get("dur", 0) * 1000)
        name = str(e.get("name"))
        corr, ext = _number(args.get("correlation")), _number(args.get("External id", args.get("external id")))
        if cat == "cuda_sync":
            syncs.append((t0, t1, names[str(args.get("cuda_sync_kind", name))], _number(args.get("device")),
                          _number(args.get("stream")), corr, _number(args.get("wait_on_stream")),
                          _number(args.get("wait_on_cuda_event_record_corr_id"))))
            continue
        kind = _KINDS.get(cat, Kind.HOST_OTHER)
        if kind >= Kind.KERNEL:
            grid, block = args.get("grid") or [0], args.get("block") or [0]
            device.append((t0, t1, names[name], kind, _number(args.get("device", e.get("pid"))),
                           _number(args.get("stream", e.get("tid"))), corr, ext, _number(args.get("bytes")),
                           int(np.prod(grid)) or NONE, int(np.prod(block)) or NONE,
                           _number(args.get("registers per thread")), _number(args.get("shared memory"))))
            continue
        if kind == Kind.OPERATOR and cat == "operator" and "::" not in name and (
                step_number(name) >= 0 or name.startswith(("enumerate(DataLoader)", "Optimizer."))):
            kind = Kind.ANNOTATION
        lane = threads.setdefault((e.get("pid"), e.get("tid")), len(threads))
        dims = args.get("Input Dims", args.get("Input dims"))
        types = args.get("Input type")
        host.append((t0, t1, names[name], kind, lane, corr, ext, _number(args.get("Sequence number")),
                     _number(args.get("Fwd thread id")),
                     names[msgspec.json.encode(dims).decode()] if dims else NONE,
                     names[msgspec.json.encode(types).decode()] if types else NONE,
                     names[args["Call stack"]] if args.get("Call stack") else NONE,
                     names[msgspec.json.encode(args["Concrete Inputs"]).decode()]
                     if args.get("Concrete Inputs") else NONE))
    info = document.get("distributedInfo") or {}
    return Trace(
        source=source, names=tuple(names), threads=tuple(Thread(_number(p), _number(t)) for p, t in threads),
        host=_table(Host, host), device=_table(Device, device), syncs=_table(Syncs, syncs),
        memory=_table(Memory, memory), collectives=_table(Collectives, []), base_ns=base * 1000,
        resolution_ns=1000 if whole else 1, rank=info.get("rank"), world_size=info.get("world_size"),
        properties={int(p["id"]): p for p in document.get("deviceProperties") or []})


_SMALL = {"kind": np.uint8}
_CODES = {"name", "thread", "device", "dims", "types", "stack", "concrete", "device_type", "host", "dtype", "group", "ranks",
          "block", "registers", "shared"}


def _table(table: Any, rows: list[Any]) -> Any:
    columns = defaultdict(list)
    if table is not Memory:
        rows.sort(key=lambda r: (r[0], -r[1]))
    else:
        rows.sort(key=lambda r: r[0])
    for field, values in zip(table.__slots__, zip(*rows, strict=True) if rows else [()] * len(table.__slots__),
                             strict=True):
        columns[field] = np.array(values, _SMALL.get(field, np.int32 if field in _CODES else np.int64))
    return table(**columns)
