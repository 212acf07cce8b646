"""A process that holds the NVML sources and does what its standard input says, one JSON object a line.

The stand-in library must be in place before a process starts, so tests drive this one
from outside. Its clock stands still but for a step at each reading of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from profiler.errors import ProfilerError
from profiler.sources import _find, nvml, nvml_slow
from profiler.sources.nvml import NvmlSource, describe
from profiler.sources.nvml_slow import NvmlSlowSource
from profiler.sources.tree import TargetTree
from tests.fakes.sink import ListSink

# A machine that is busy with other tests is no driver that hangs: only tests of hanging calls are in a hurry.
HURRY = nvml.PATIENCE_S, nvml_slow.PATIENCE_S, 0.5
nvml.PATIENCE_S = nvml_slow.PATIENCE_S = 5.0


class Clock:
    def __init__(self) -> None:
        self.t = 0

    def now_ns(self) -> int:
        self.t += 1000
        return self.t

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns


class Child:
    def __init__(self) -> None:
        self.sink, self.clock, self.tree = ListSink(), Clock(), TargetTree()
        self.fast = NvmlSource()
        self.slow = NvmlSlowSource(self.fast, self.tree)

    def do(self, command: dict[str, Any]) -> Any:
        name = command.pop("do")
        return getattr(self, f"do_{name}")(**command)

    def do_call(self, source: str, method: str) -> None:
        getattr(getattr(self, source), method)(self.sink, self.clock)

    def do_read(self, source: str, times: int, step_s: float) -> None:
        for _ in range(times):
            self.clock.t += round(step_s * 1e9)
            getattr(self, source).read(self.sink, self.clock)

    def do_hurry(self) -> None:
        """Be as impatient as the product is, of opening more so. Before the sources are opened."""
        nvml.PATIENCE_S, nvml_slow.PATIENCE_S, _find.PATIENCE_S = HURRY

    def do_counts(self) -> dict[str, int]:
        """How many samples there are: by metric and the device's index, "gpu.power 0"."""
        index = {device.id: device.index for device in self.sink.devices}
        of = {t.id: f"{t.metric} {index[t.device]}" for t in self.sink.tracks if t.device is not None}
        return dict(Counter(of[track] for track, _, _ in self.sink.samples if track in of))

    def do_epoch(self) -> int:
        return self.fast.library.epoch

    def do_follow(self, pid: int) -> None:
        self.tree.follow(pid, 1)

    def do_names_as_bytes(self) -> None:
        """Make the binding behave as its older versions did."""
        import pynvml

        def as_bytes(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda handle: function(handle).encode()

        pynvml.nvmlDeviceGetName = as_bytes(pynvml.nvmlDeviceGetName)
        pynvml.nvmlDeviceGetUUID = as_bytes(pynvml.nvmlDeviceGetUUID)

    def do_describe(self) -> dict[str, Any]:
        return describe()

    def do_modules(self) -> list[str]:
        return sorted(sys.modules)

    def do_dump(self) -> dict[str, Any]:
        sink = self.sink
        return {
            "meta": sink.meta,
            "devices": [asdict(device) for device in sink.devices],
            "tracks": [asdict(track) for track in sink.tracks],
            "events": [asdict(event) for event in sink.events],
            "samples": list(sink.samples),
        }


def main() -> None:
    child = Child()
    for line in sys.stdin:
        answer: dict[str, Any] = {}
        try:
            answer["value"] = child.do(json.loads(line))
        except ProfilerError as error:
            answer["error"] = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
