"""A process that holds the NVML sources and does what its standard input says, one JSON object a line.

The stand-in library must be in place before a process starts, so tests drive this one
from outside.
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
from profiler.sources import nvml, nvml_slow
from profiler.sources.nvml import NvmlSource, describe
from profiler.sources.nvml_slow import NvmlSlowSource
from profiler.sources.tree import TargetTree
from tests.fakes import attention
from tests.fakes.sources import Both

# A machine that is busy with other tests is no driver that hangs.
nvml.PATIENCE_S = nvml_slow.PATIENCE_S = 5.0


class Child(Both):
    def __init__(self) -> None:
        self.tree = TargetTree()
        self.fast = NvmlSource()
        self.slow = NvmlSlowSource(self.fast, self.tree)
        super().__init__(self.fast, self.slow)
        self.told = 0, 0  # samples and events of the sink that `news` has told

    def do(self, command: dict[str, Any]) -> Any:
        name = command.pop("do")
        return getattr(self, f"do_{name}")(**command)

    def do_call(self, source: str, method: str) -> None:
        getattr(self.sources[source], method)(self.sink, self.clock)

    def do_read(self, source: str, times: int, step_s: float) -> None:
        self.tick(source, times, step_s)

    def do_attend(self) -> None:
        """From here on a call hangs when the stand-in says so, and at once. Before the sources are opened."""
        attention.attend()

    def do_anew(self) -> None:
        """Sources and a sink like those of a new process. The library is shut down where no call hangs."""
        self.close()
        self.__init__()  # type: ignore[misc]

    def do_asked(self) -> list[str]:
        """Symbols that the binding was asked for so far."""
        return sorted(attention.ASKED)

    def do_without(self, symbols: list[str]) -> None:
        """From here on the library lacks these symbols."""
        attention.LACKING.clear()
        attention.LACKING.update(symbols)

    def do_settle(self) -> bool:
        """Wait until no call hangs and each job may run again. Whether that came to be."""
        relays = [relay for relay in (self.fast._relay, self.slow._relay) if relay is not None]
        return attention.settled(lambda: not any(relay._left for relay in relays))

    def _devices(self) -> dict[int, str]:
        """Id -> name of each device: its index, of a slice "index/number"."""
        of = {device.id: str(device.index) for device in self.sink.devices}
        slices = [device for device in self.sink.devices if "mig_parent" in device.properties]
        return of | {device.id: f"{device.index}/{number}" for number, device in enumerate(slices)}

    def do_properties(self) -> dict[str, dict[str, Any]]:
        """What is kept of each device, by its name."""
        of = self._devices()
        return {of[d.id]: {**d.properties, "memory_total": d.memory_total} for d in self.sink.devices}

    def do_news(self) -> dict[str, Any]:
        """What came since the last call: how often each value of "METRIC DEVICE", and the events."""
        sink, (samples, events) = self.sink, self.told
        self.told = len(sink.samples), len(sink.events)
        of = self._devices()
        names = {t.id: f"{t.metric} {of[t.device]}" for t in sink.tracks if t.device is not None}
        values: dict[str, Counter[float]] = {}
        for track, _, value in sink.samples[samples:self.told[0]]:
            values.setdefault(names[track], Counter())[round(value, 6)] += 1
        return {"values": {name: list(counts.items()) for name, counts in values.items()},
                "events": [(e.kind, None if e.device is None else of[e.device], e.data.get("field"))
                           for e in sink.events[events:self.told[1]]]}

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
    attention.listen()
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
