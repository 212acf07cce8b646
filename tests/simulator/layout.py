"""A timeline as the profiler would have written it, in the forms that its files have."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.simulator import actions as A
from tests.simulator.actions import Program
from tests.simulator.layout_device import properties, write_devices
from tests.simulator.operators import Gpu
from tests.simulator.timeline import Call, Span, Timeline

OLD = {
    "cpu_op": "Operator",
    "user_annotation": "Operator",
    "cuda_runtime": "Runtime",
    "cuda_driver": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
BASE_NS = 1_751_410_836_000_000_000


@dataclass(frozen=True)
class Layout:
    """What varies between files."""

    old: bool = False  # categories in old spelling
    times: str = "base"  # base: floats relative to baseTimeNanoseconds; text: the same as text;
    #                                whole: integers since the epoch; epoch: decimals since the epoch
    syncs: bool = False  # rows of category cuda_sync
    annotations: bool = True  # copies of annotations on the device
    python: bool = False  # python_function rows
    flows: bool = True  # ac2g and fwdbwd
    driver: str = "none"  # none, nested: a driver call in a runtime call; alone: instead of it
    stream_text: bool = False  # tid "stream 7"
    records: bool = True  # event records are in the file
    hip: bool = False  # names of AMD's runtime
    first_device: int = 0  # id of the process's first device
    duplicates: bool = False  # the steps are annotated on another thread too
    lost: float = 0.0  # share of the kernels whose launch is not in the file
    helper: bool = False  # a thread that pins memory beside the loop
    rank: int = 0
    ranks: int = 1
    offset_us: int = 666_000_000_000  # of the first event


class Writer:
    """Collects the events of one file."""

    def __init__(self, timeline: Timeline, program: Program, gpu: Gpu, layout: Layout) -> None:
        self.timeline, self.program, self.gpu, self.layout = timeline, program, gpu, layout
        self.pid = 100_000 + program.first * 331
        self.events: list[tuple[int, str]] = []
        self.host = self.spans()
        self.owner = self.external()

    def tid(self, thread: str) -> int:
        return self.pid + {"main": 0}.get(thread, 500 + 3 * len(thread))

    def time(self, ns: int) -> str:
        """A point in time as the file has it."""
        ns += self.layout.offset_us * 1000
        if self.layout.times in ("whole", "epoch"):
            ns += BASE_NS - self.layout.offset_us * 1000
        if self.layout.times == "whole":
            return str(ns // 1000)
        text = f"{ns // 1000}.{ns % 1000:03d}"
        return f'"{text}"' if self.layout.times == "text" else text

    def length(self, t0: int, t1: int) -> str:
        if self.layout.times == "whole":
            return str(t1 // 1000 - t0 // 1000)
        return f"{(t1 - t0) // 1000}.{(t1 - t0) % 1000:03d}"

    def row(
        self, category: str, name: str, pid: Any, tid: Any, t0: int, t1: int, args: dict[str, Any]
    ) -> None:
        if self.layout.old:
            category = OLD.get(category, category)
        head = json.dumps({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid})
        self.events.append(
            (
                t0,
                f'{head[:-1]}, "ts": {self.time(t0)}, "dur": {self.length(t0, t1)}, '
                f'"args": {json.dumps(args)}}}',
            )
        )

    def flow(self, phase: str, number: int, category: str, name: str, pid: Any, tid: Any, t: int) -> None:
        if not self.layout.flows:
            return
        if self.layout.old:
            category, name = "async", "launch" if category == "ac2g" else name
        end = ', "bp": "e"' if phase == "f" else ""
        head = json.dumps({"ph": phase, "id": number, "pid": pid, "tid": tid, "cat": category, "name": name})
        self.events.append((t, f'{head[:-1]}, "ts": {self.time(t)}{end}}}'))

    # Host -------------------------------------------------

    def spans(self) -> list[Span]:
        """Operators and annotations, steps among them, outermost first."""
        t = self.timeline
        steps = [
            Span(t0, t1, f"ProfilerStep#{self.program.number(k)}", "main", "user_annotation")
            for k, (t0, t1) in enumerate(zip(t.step_start, t.step_end, strict=True))
        ]
        return sorted([*steps, *t.spans], key=lambda s: (s.start, -s.end))

    def external(self) -> dict[int, int]:
        """External id of the innermost operator around each call, by the call's row."""
        result: dict[int, int] = {}
        lanes: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for number, span in enumerate(self.host):
            lanes[span.thread].append((span.start, span.end, number + 1))
        for thread, spans in lanes.items():
            stack: list[tuple[int, int, int]] = []
            calls = [(c.start, k) for k, c in enumerate(self.timeline.calls) if c.thread == thread]
            at = 0
            for start, row in calls:
                while at < len(spans) and spans[at][0] <= start:
                    stack.append(spans[at])
                    at += 1
                while stack and stack[-1][1] <= start:
                    stack.pop()
                result[row] = stack[-1][2] if stack else 0
        return result

    def write_host(self) -> None:
        forward: dict[int, Span] = {}
        for number, span in enumerate(self.host):
            args: dict[str, Any] = {"External id": number + 1}
            if span.sequence:
                args["Sequence number"] = abs(span.sequence)
            if span.sequence < 0:
                args["Fwd thread id"] = 1
            self.row(span.category, span.name, self.pid, self.tid(span.thread), span.start, span.end, args)
            if span.sequence > 0:
                forward[span.sequence] = span
            elif span.sequence < 0 and -span.sequence in forward:
                source = forward.pop(-span.sequence)
                self.flow("s", number, "fwdbwd", "fwdbwd", self.pid, self.tid(source.thread), source.start)
                self.flow("f", number, "fwdbwd", "fwdbwd", self.pid, self.tid(span.thread), span.start)
        if self.layout.python:
            self.write_python()
        if self.layout.helper:
            self.write_helper()

    def write_python(self) -> None:
        number = 0
        for t0, t1 in zip(self.timeline.step_start, self.timeline.step_end, strict=True):
            number += 1
            step = number
            self.row(
                "python_function",
                "train.py(88): train_step",
                self.pid,
                self.pid,
                t0 + 200,
                t1 - 200,
                {"Python parent id": None, "Python id": step},
            )
            for span in self.host:
                if span.sequence > 0 and t0 <= span.start < t1:
                    number += 1
                    kind = span.name.split("::")[1].title()
                    self.row(
                        "python_function",
                        f"nn.Module: {kind}_{span.sequence}",
                        self.pid,
                        self.pid,
                        span.start - 150,
                        span.end + 150,
                        {"Python parent id": step, "Python id": number, "Python module id": span.sequence},
                    )

    def write_helper(self) -> None:
        """The loader's thread that pins memory: the loop does not wait for it."""
        for k, t0 in enumerate(self.timeline.step_start):
            if self.layout.duplicates:
                name, tid = f"ProfilerStep#{self.program.number(k)}", self.pid + 900
                end = self.timeline.step_end[k]
                self.row("user_annotation", name, self.pid, tid, t0 + 40_000, end, {"External id": 1})
            at = t0 + 150_000 + 9_000 * (k % 5)
            args = {"External id": 900_000 + k, "correlation": 900_000 + k, "cbid": 27}
            self.row(
                "cpu_op", "aten::pin_memory", self.pid, self.pid + 900, at, at + 320_000, {"External id": 1}
            )
            self.row(
                "cuda_runtime", "cudaHostAlloc", self.pid, self.pid + 900, at + 9_000, at + 210_000, args
            )

    def write_calls(self) -> None:
        records: dict[Any, Call] = {}
        for row, call in enumerate(self.timeline.calls):
            args = {"External id": self.owner.get(row, 0), "cbid": 211, "correlation": call.correlation}
            tid, category, name = self.tid(call.thread), "cuda_runtime", call.name
            if (
                call.kind == A.LAUNCH
                and row % 3 == 0
                and self.layout.driver != "none"
                and not self.layout.old
            ):
                if self.layout.driver == "alone":
                    category, name = "cuda_driver", "cuLaunchKernel"
                elif call.end - call.start > 1500:
                    self.row(
                        "cuda_driver",
                        "cuLaunchKernelEx",
                        self.pid,
                        tid,
                        call.start + 600,
                        call.end - 500,
                        args,
                    )
            if call.kind == A.RECORD and not self.layout.records and not self.layout.syncs:
                continue
            if self.layout.hip:
                name = name.replace("cuda", "hip").replace("LaunchKernelExC", "ExtLaunchKernel")
            self.row(category, name, self.pid, tid, call.start, call.end, args)
            if call.kind in (A.LAUNCH, A.GRAPH, A.COPY, A.MEMSET):
                self.flow("s", call.correlation, "ac2g", "ac2g", self.pid, tid, call.start)
            if call.kind == A.RECORD:
                records[call.info] = call
            if self.layout.syncs and call.kind in (A.SYNC, A.WAIT):
                self.write_sync(call, records)

    def write_sync(self, call: Call, records: dict[Any, Call]) -> None:
        kind = (
            "Stream Wait Event"
            if call.kind == A.WAIT
            else {"cudaDeviceSynchronize": "Context Sync", "cudaEventSynchronize": "Event Sync"}.get(
                call.name, "Stream Sync"
            )
        )
        args: dict[str, Any] = {
            "cuda_sync_kind": kind,
            "stream": call.stream,
            "correlation": call.correlation,
            "device": call.device + self.layout.first_device,
        }
        if kind == "Stream Wait Event":
            if call.info not in records:
                return
            record = records[call.info]
            args |= {
                "wait_on_stream": record.stream,
                "wait_on_cuda_event_record_corr_id": record.correlation,
                "wait_on_cuda_event_id": 9,
            }
        self.row("cuda_sync", kind, args["device"], call.stream, call.start + 200, call.end, args)


def text(timeline: Timeline, program: Program, gpu: Gpu, layout: Layout) -> str:
    """The whole file."""
    writer = Writer(timeline, program, gpu, layout)
    writer.write_host()
    writer.write_calls()
    write_devices(writer)
    begin = timeline.step_start[0]
    named = {"ph": "M", "name": "process_name", "pid": writer.pid, "tid": 0, "args": {"name": "python3"}}
    events = [
        json.dumps(named)[:-1] + f', "ts": {writer.time(begin)}}}',
        *(line for _, line in writer.events),
    ]
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [properties(gpu, d) for d in range(max(program.devices, layout.ranks))],
    }
    if layout.ranks > 1:
        head["distributedInfo"] = {"backend": "nccl", "rank": layout.rank, "world_size": layout.ranks}
    if layout.times in ("base", "text"):
        head["baseTimeNanoseconds"] = BASE_NS
    return (
        json.dumps(head)[:-1] + ', "displayTimeUnit": "ms", "traceEvents": [\n' + ",\n".join(events) + "\n]}"
    )


def write(path: Path, content: str) -> None:
    """Plain, or gz by the name."""
    data = content.encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
