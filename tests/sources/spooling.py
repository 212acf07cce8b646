"""A spool directory with a source on it, written to as a probe does."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from profiler.sources.spool import SpoolSource
from profiler.sources.tree import TargetTree
from tests.fakes.sink import ListSink

OFFSET = 1_000_000_000_000  # of the run's clock over the monotonic one


class Clock:
    def now_ns(self) -> int:
        return self.from_monotonic(time.monotonic_ns())

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns + OFFSET


class Spool:
    """A spool directory with a source on it; `write` appends as a probe does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sink = ListSink()
        self.clock = Clock()
        self.tree = TargetTree()
        self.devices: dict[str, int] = {}
        self.source = SpoolSource(directory, self.tree, self.devices)
        self.source.open(self.sink, self.clock)
        self.t = time.monotonic_ns() - 1_000_000_000

    def write(self, *records: Any, pid: int = 70, n: int = 0) -> None:
        lines = b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records)
        with self.path(pid, n).open("ab") as file:
            file.write(lines)

    def path(self, pid: int = 70, n: int = 0) -> Path:
        return self.directory / f"{pid}.{n}.spool"

    def read(self) -> ListSink:
        self.source.read(self.sink, self.clock)
        return self.sink

    def step(self, index: int, **values: Any) -> list[Any]:
        t0 = self.t + index * 10_000_000
        row = {
            "t0": t0,
            "t1": t0 + 10_000_000,
            "data": 1000,
            "h2d": 200,
            "forward": 300,
            "backward": 400,
            "optimizer": 50,
            "data_cpu": 7,
            "thread_cpu": 8,
            "samples": 32,
            "optimizer_calls": 1,
            "syncs": 2,
            "sync_ns": 9,
            "flags": 0,
        } | values
        return ["step", index, *row.values()]

    def hello(self, **values: Any) -> list[Any]:
        return [
            "hello",
            {
                "version": 1,
                "pid": 70,
                "ppid": 1,
                "t": self.t,
                "python": "3.11.2",
                "argv": ["python", "train.py", "--data", "a b"],
                "rank": None,
                "world": None,
            }
            | values,
        ]
