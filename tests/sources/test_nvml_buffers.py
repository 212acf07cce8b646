"""The driver's buffers of samples (N12): they have their own clock, and nothing new is no error."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from profiler.metrics import METRICS
from profiler.sources import _buffers
from tests.fakes.sink import ListSink

Start = Callable[..., Any]
UTIL, POWER = "gpu.util_samples", "gpu.power_samples"


def stamps(newest_us: int, count: int = 10) -> tuple[str, ...]:
    return (f"buffer_stamp_us {newest_us}", f"buffer_count {count}", "buffer_period_us 20000")


def wall_us() -> int:
    return time.time_ns() // 1000


def test_n12_samples_keep_the_times_at_which_they_were_taken(start_nvml: Start) -> None:
    first = wall_us() - 2_000_000
    child = start_nvml("gpus 1", *stamps(first), "buffer_util 90")
    child.open()
    child.read_slow()
    assert child.dump().values(UTIL) == []  # of before the run
    child.plan.set("gpus 1", *stamps(first + 60_000), "buffer_util 25", "buffer_power_mw 123456")
    child.read_slow(times=3)  # the same buffer again brings nothing
    dump = child.dump()
    assert dump.values(UTIL) == [0.25] * 3 and dump.values(POWER) == pytest.approx([123.456] * 3)
    times = [t_ns for t_ns, _ in dump.samples(UTIL)]
    assert [b - a for a, b in zip(times, times[1:], strict=False)] == [20_000_000] * 2
    assert dump.events == [] and {UTIL, POWER} <= METRICS.keys()


def test_n12_nothing_new_is_neither_a_value_nor_an_error(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetSamples 6")
    child.open()
    child.read_slow(times=5)
    dump = child.dump()
    assert dump.values(UTIL) == [] and dump.events == []
    newest = wall_us() - 1_000_000
    child.plan.set("gpus 1", *stamps(newest))
    child.read_slow()
    child.plan.set("gpus 1", *stamps(newest + 20_000))
    child.read_slow()
    assert child.dump().values(UTIL) == [0.5]


@pytest.mark.parametrize(("line", "metric"), [
    ("buffer_util 4096", UTIL), ("buffer_util 1000000000", UTIL), ("buffer_power_mw 4294967295", POWER)])
def test_n12_values_that_cannot_be_are_none(start_nvml: Start, line: str, metric: str) -> None:
    newest = wall_us() - 1_000_000
    child = start_nvml("gpus 1", *stamps(newest))
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", *stamps(newest + 40_000), line)
    child.read_slow()
    dump = child.dump()
    assert dump.values(metric) == []
    assert len(dump.values(POWER if metric == UTIL else UTIL)) == 2


def test_n12_stamps_of_the_monotonic_clock_are_understood(start_nvml: Start) -> None:
    newest = time.monotonic_ns() // 1000 - 1_000_000
    child = start_nvml("gpus 1", *stamps(newest))
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", *stamps(newest + 40_000))
    child.read_slow()
    assert [t for t, _ in child.dump().samples(UTIL)] == [(newest + 20_000) * 1000, (newest + 40_000) * 1000]


def test_n12_stamps_of_no_clock_are_told_once_and_give_nothing(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", *stamps(12_345))
    child.open()
    child.read_slow(times=5)
    dump = child.dump()
    assert dump.values(UTIL) == []
    assert ["clock" in e.text for e in dump.events] == [True, True]  # of each buffer


def test_n12_no_buffer_is_one_absent_field(start_nvml: Start) -> None:
    child = start_nvml("gpus 1", "ret nvmlDeviceGetSamples 3")
    child.open()
    child.read_slow(times=50)
    assert [e.data["metrics"] for e in child.dump().kinds("field_absent")] == [[UTIL], [POWER]]


def test_each_gpu_has_its_own_last_sample(start_nvml: Start) -> None:
    newest = wall_us() - 3_000_000
    child = start_nvml(*stamps(newest))
    child.open()
    child.read_slow()
    child.plan.set(*stamps(newest), f"buffer_stamp_us:1 {newest + 20_000}")
    child.read_slow()
    dump = child.dump()
    assert dump.values(UTIL) == [] and dump.values(UTIL, gpu=1) == [0.5]


class OneGpu:
    """A GPU whose buffer has three samples more at each look."""

    id, index, binding, handle, lost, epoch = 1, 0, 0, None, None, 0

    def __init__(self) -> None:
        self.library, self.nvml = self, self
        self.newest = wall_us() - 10_000_000

    def ready(self, *_: Any) -> bool:
        return True

    def nvmlDeviceGetSamples(self, handle: None, kind: int, since: int) -> tuple[int, list[Any]]:
        self.newest += 60_000
        values = (SimpleNamespace(uiVal=value) for value in (10, 20, 60))
        return 1, [SimpleNamespace(timeStamp=self.newest - (2 - i) * 20_000, sampleValue=value)
                   for i, value in enumerate(values)]


def test_a_long_run_keeps_means_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_buffers, "FULL", 6)
    gpu, sink = OneGpu(), ListSink()
    buffer = _buffers.Buffer(gpu, "samples", UTIL, 1, 0.01, 1.0)  # type: ignore[arg-type]
    clock: Any = SimpleNamespace(now_ns=time.time_ns)
    for _ in range(5):  # the first is of before the run
        buffer.read(sink, clock)
    values = [value for _, _, value in sink.samples]
    assert values == pytest.approx([0.1, 0.2, 0.6] * 2 + [0.3] * 2)
    times = [t_ns for _, t_ns, _ in sink.samples]
    assert times == sorted(times) and times[-1] == pytest.approx(gpu.newest * 1000, abs=10_000_000)
    assert [event.kind for event in sink.events] == ["thinned"]


def test_a_stamp_is_of_the_clock_that_is_near() -> None:
    assert _buffers.clock_of(wall_us()) == "wall"
    assert _buffers.clock_of(time.monotonic_ns() // 1000) == "monotonic"
    assert _buffers.clock_of(wall_us() + 10_000_000) is None and _buffers.clock_of(0) is None


def test_n12_samples_of_another_type_than_is_told_are_none(start_nvml: Start) -> None:
    """Read as 16 bits wide, 100 000 mW would be 34 464: a value that could be."""
    newest = wall_us() - 1_000_000
    child = start_nvml("gpus 1", *stamps(newest))
    child.open()
    child.read_slow()
    child.plan.set("gpus 1", *stamps(newest + 40_000), "junk nvmlDeviceGetSamples wrong_type")
    child.read_slow()
    dump = child.dump()
    assert dump.values(POWER) == [] and [e.data["metrics"] for e in dump.kinds("implausible")] == [[POWER]]


class Stale(OneGpu):
    """A driver that gives its whole buffer whatever was asked; it grows by one sample at each look."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.looks, self.since = self.newest, 0, list[int]()

    def nvmlDeviceGetSamples(self, handle: None, kind: int, since: int) -> tuple[int, list[Any]]:
        self.looks += 1
        self.since.append(since)
        return 1, [SimpleNamespace(timeStamp=self.first + i * 20_000, sampleValue=SimpleNamespace(uiVal=i))
                   for i in range(self.looks)]


def test_n12_the_last_time_stamp_is_asked_from_and_older_samples_are_dropped() -> None:
    gpu, sink, run_ns = Stale(), ListSink(), [time.time_ns()]

    def now_ns() -> int:  # a clock that goes ahead: by it alone an old sample would be a new one
        run_ns[0] += 1_000_000_000
        return run_ns[0]

    buffer = _buffers.Buffer(gpu, "samples", UTIL, 1, 0.01, 1.0)  # type: ignore[arg-type]
    clock: Any = SimpleNamespace(now_ns=now_ns)
    for _ in range(5):
        buffer.read(sink, clock)
    assert [value for _, _, value in sink.samples] == pytest.approx([0.01, 0.02, 0.03, 0.04])
    assert gpu.since == [0, *(gpu.first + i * 20_000 for i in range(4))]
