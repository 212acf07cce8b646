"""Small traces for tests, in every form that Kineto writes. Times are ns from the start of the timeline."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from profiler.importers import kineto
from profiler.trace.model import Trace

EPOCH_US = 1_700_000_000_000_000      # when the timelines began, us since the epoch
BASE_NS = 1_699_000_000_000_000_000   # "baseTimeNanoseconds" of the files that have one
PID = 4242
_OLD = {"cpu_op": "Operator", "user_annotation": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel",
        "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
_KEYS = {"external": "External id", "sequence": "Sequence number", "forward_thread": "Fwd thread id",
         "dims": "Input Dims", "types": "Input type", "stack": "Call stack",
         "registers": "registers per thread", "shared": "shared memory"}
_HOST = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function", "cpu_instant_event",
         "overhead"}


class Timeline:
    """What happened, event by event; written out by `document`, read back by `trace`.

    Further keywords of a method are arguments of the event: the names of `_KEYS`, or any
    key as the file has it (`**{"Group size": 8}`). Every method returns the timeline.
    """

    def __init__(self, *, rank: int | None = None, world_size: int | None = None, **top: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.top: dict[str, Any] = dict(top)
        if rank is not None:
            self.top["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size or 1}

    def event(self, cat: str, name: str, t0: int, t1: int | None, pid: int, tid: Any,
              args: dict[str, Any]) -> Timeline:
        """Any event; without `t1` an instant."""
        self.events.append({"cat": cat, "name": name, "t0": t0, "t1": t1, "pid": pid, "tid": tid,
                            "args": {_KEYS.get(k, k): v for k, v in args.items()}})
        return self

    def op(self, name: str, t0: int, t1: int, thread: int = 1, **args: Any) -> Timeline:
        return self.event("cpu_op", name, t0, t1, PID, thread, args)

    def annotation(self, name: str, t0: int, t1: int, thread: int = 1, **args: Any) -> Timeline:
        return self.event("user_annotation", name, t0, t1, PID, thread, args)

    def step(self, number: int, t0: int, t1: int, thread: int = 1) -> Timeline:
        return self.annotation(f"ProfilerStep#{number}", t0, t1, thread)

    def python(self, name: str, t0: int, t1: int, thread: int = 1, **args: Any) -> Timeline:
        return self.event("python_function", name, t0, t1, PID, thread, args)

    def call(self, name: str, t0: int, t1: int, correlation: int, thread: int = 1, *, driver: bool = False,
             **args: Any) -> Timeline:
        """A runtime call, or one of the driver API."""
        cat = "cuda_driver" if driver else "cuda_runtime"
        return self.event(cat, name, t0, t1, PID, thread, {"correlation": correlation, **args})

    def kernel(self, name: str, t0: int, t1: int, correlation: int, stream: int = 7, device: int = 0,
               **args: Any) -> Timeline:
        """`grid` and `block` are lists of three; `registers` a thread, `shared` bytes a block."""
        return self._activity("kernel", name, t0, t1, correlation, stream, device, args)

    def memcpy(self, name: str, t0: int, t1: int, correlation: int, stream: int = 7, device: int = 0,
               **args: Any) -> Timeline:
        """`name` as Kineto has it: "Memcpy HtoD (Pageable -> Device)"; `bytes`."""
        return self._activity("gpu_memcpy", name, t0, t1, correlation, stream, device, args)

    def memset(self, t0: int, t1: int, correlation: int, stream: int = 7, device: int = 0,
               **args: Any) -> Timeline:
        return self._activity("gpu_memset", "Memset (Device)", t0, t1, correlation, stream, device, args)

    def sync_row(self, kind: str, t0: int, t1: int, correlation: int, stream: int = 7, device: int = 0, *,
                 wait_stream: int = -1, wait_record: int = -1) -> Timeline:
        """A row of category cuda_sync: "Stream Sync", "Event Sync", "Stream Wait Event", "Context Sync"."""
        args = {"cuda_sync_kind": kind, "wait_on_stream": wait_stream,
                "wait_on_cuda_event_record_corr_id": wait_record}
        return self._activity("cuda_sync", kind, t0, t1, correlation, stream, device, args)

    def memory(self, t: int, size: int, address: int = 0x7F00_0000_0000, thread: int = 1, device: int = 0, *,
               device_type: int = 1, allocated: int = 0, reserved: int = 0) -> Timeline:
        """An allocation of `size` bytes, negative when freed; totals after it."""
        args = {"Total Reserved": reserved, "Total Allocated": allocated, "Bytes": size, "Addr": address,
                "Device Id": device, "Device Type": device_type}
        return self.event("cpu_instant_event", "[memory]", t, None, PID, thread, args)

    def _activity(self, cat: str, name: str, t0: int, t1: int, correlation: int, stream: int, device: int,
                  args: dict[str, Any]) -> Timeline:
        own = {"device": device, "context": 1, "stream": stream, "correlation": correlation}
        return self.event(cat, name, t0, t1, device, stream, {**own, **args})

    def document(self, spelling: str = "new", times: str = "base") -> dict[str, Any]:
        """The trace as a decoded JSON document.

        `spelling`: "new" or "old". `times`: "base" (floats from baseTimeNanoseconds, exact),
        "float" (floats since the epoch: a quarter of a microsecond is what they resolve),
        "int" (whole microseconds since the epoch; both ends are rounded down).
        """
        result = {"schemaVersion": 1, **self.top,
                  "traceEvents": [_written(e, spelling, times) for e in self.events]}
        if times == "base":
            result["baseTimeNanoseconds"] = BASE_NS
        return result

    def bytes(self, spelling: str = "new", times: str = "base", *, gz: bool = False) -> bytes:
        """The document as a file's content."""
        data = json.dumps(self.document(spelling, times)).encode()
        return gzip.compress(data, 1) if gz else data

    def save(self, path: Path, spelling: str = "new", times: str = "base") -> Path:
        """The file, compressed when its name ends in .gz."""
        path.write_bytes(self.bytes(spelling, times, gz=path.suffix == ".gz"))
        return path

    def trace(self, spelling: str = "new", times: str = "base", name: str = "trace.json") -> Trace:
        """The trace as the importer reads it."""
        with tempfile.TemporaryDirectory() as folder:
            [trace] = kineto.load(self.save(Path(folder) / name, spelling, times))
        return trace


def _written(event: dict[str, Any], spelling: str, times: str) -> dict[str, Any]:
    """One event as a file has it."""
    old, host = spelling == "old", event["cat"] in _HOST
    args = dict(event["args"])
    result: dict[str, Any] = {"ph": "X" if event["t1"] is not None else "i"}
    if event["t1"] is None:
        result["s"] = "t"
    if not (old and event["cat"] == "cpu_instant_event"):
        result["cat"] = _OLD.get(event["cat"], event["cat"]) if old else event["cat"]
    result |= {"name": event["name"], "pid": event["pid"], "tid": event["tid"]}
    if old:
        result["tid"] = str(event["tid"]) if host else f"stream {event['tid']}"
        if event["cat"] not in ("cpu_op", "user_annotation") and "External id" in args:
            args["external id"] = args.pop("External id")
    result["ts"] = _microseconds(event["t0"], times, EPOCH_US)
    if event["t1"] is not None:
        if times == "int":
            result["dur"] = _microseconds(event["t1"], times, EPOCH_US) - result["ts"]
        else:
            result["dur"] = (event["t1"] - event["t0"]) / 1000
    return {**result, "args": args} if args else result


def _microseconds(ns: int, times: str, epoch_us: int) -> Any:
    if times == "int":
        return epoch_us + ns // 1000
    if times == "float":
        return (epoch_us * 1000 + ns) / 1000
    if times == "base":
        return (epoch_us * 1000 - BASE_NS + ns) / 1000
    raise ValueError(f"no form of times is called {times}")
