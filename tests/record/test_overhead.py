"""What the recorder tells of itself."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from profiler.record import gpus
from profiler.record.clock import Clock
from profiler.record.gpus import GpuReader, RemoteTicks
from profiler.record.overhead import Overhead
from tests.fakes.sink import ListSink

SECOND = 10**9


def reader(sink: ListSink) -> GpuReader:
    return GpuReader(sink, Clock(), 10.0, None)  # never started


def told(**sources: list[Any]) -> list[Any]:
    return ["ticks", time.monotonic_ns(), 5 * SECOND, 20_000, sources]


def test_the_rate_of_a_source_is_that_since_its_first_tick() -> None:
    sink = ListSink()
    one = reader(sink)
    late = one.ticks["nvml"] = RemoteTicks("nvml", SECOND // 10)
    one.ticks["amd"] = RemoteTicks("amd", SECOND // 10)
    late.cadence.begun_ns = time.monotonic_ns() - 1000 * SECOND
    late.cadence.ticks = 10_000
    sources = Overhead([], one).summary()["sources"]
    assert sources["nvml"]["rate_hz"] == pytest.approx(10, rel=0.05)
    assert sources["amd"]["rate_hz"] is None and sources["amd"]["asked_hz"] == 10


def test_ticks_of_all_lives_of_the_reader_are_counted() -> None:
    one = reader(ListSink())
    one._hear(told(nvml=[SECOND // 10, 7, 1, 700, 300, None]))
    one._hear(told(nvml=[SECOND // 10, 3, 2, 300, 200, "gone"]))
    ticks = one.ticks["nvml"]
    cadence = ticks.cadence
    assert (cadence.ticks, cadence.missed, cadence.lateness_sum_ns, cadence.lateness_max_ns) == (
        10, 3, 1000, 300)
    assert (ticks.off, cadence.take_recent(), cadence.take_recent()) == ("gone", 300, 0)


def test_cpu_of_the_reader_is_the_recorders_in_share_and_sum() -> None:
    sink = ListSink()
    one = reader(sink)
    overhead = Overhead([], one)
    one._hear(["ticks", 100 * SECOND, 5 * SECOND, 20_000, {}])
    assert one.cpu_share == 0  # of one word no share can be told
    one._hear(["ticks", 102 * SECOND, 6 * SECOND, 21_000, {}])
    assert (one.cpu_share, one.cpu_ns, one.peak_rss) == (0.5, 6 * SECOND, 21_000)
    one._taker.begin()
    one._used = (0, 0)  # another process, whose clock of CPU time begins anew
    one._hear(["ticks", 103 * SECOND, SECOND, 15_000, {}])
    assert (one.cpu_share, one.cpu_ns, one.peak_rss) == (0.0, 7 * SECOND, 21_000)
    one.cpu_share = 0.5
    overhead.sample(sink, Clock())
    [(_, share)] = sink.values("recorder.cpu")
    assert share >= 0.5
    assert overhead.summary()["cpu_s"] >= 7 and overhead.summary()["peak_rss"] > 21_000


def test_a_reader_that_is_done_costs_nothing_any_more() -> None:
    """Without a GPU it ends at once: its share of the first second is not that of all later ones."""
    one = reader(ListSink())
    for k in (0, 1):
        one._hear(["ticks", (100 + k) * SECOND, k * SECOND, 20_000, {}])
    assert one.cpu_share == 1.0
    one._hear(["done"])
    assert one.cpu_share == 0.0
    one._hear(["ticks", 101 * SECOND + 100, SECOND + 99, 20_000, {}])  # its last words, after that
    assert (one.cpu_share, one.cpu_ns) == (0.0, SECOND + 99)


def test_deaths_are_told_a_bounded_number_of_times() -> None:
    sink = ListSink()
    one = reader(sink)
    for _ in range(3 * gpus.DEATHS_TOLD):
        one._dead_ns = time.monotonic_ns() - 2 * SECOND
        one._tell_death(gpus.Death(-11, b""), 60.0)
        one._back()
    kinds = sink.kinds()
    assert kinds.count("gap") == kinds.count("source_back") == gpus.DEATHS_TOLD
    assert "what follows of this is not told" in [e for e in sink.events if e.kind == "gap"][-1].text


@pytest.mark.parametrize(("status", "said", "reason"), [
    (-11, b"Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n"
          b'  File "/x/pynvml.py", line 1 in nvmlDeviceGetName\n  File "/x", line 2 in nvmlOther\n',
     "the GPU driver's library crashed (SIGSEGV) in nvmlDeviceGetName"),
    (-6, b"terminate called", "the GPU driver's library crashed (SIGABRT)"),
    (-9, b"", "the process that reads the GPUs ended (SIGKILL)"),
    (-70, b"", "the process that reads the GPUs ended (signal 70)"),
    (1, b"Traceback\n  x\nModuleNotFoundError: psutil\n",
     "the process that reads the GPUs ended (status 1: ModuleNotFoundError: psutil)"),
    (0, b"", "the process that reads the GPUs ended (status 0)"),
])  # fmt: skip
def test_how_a_reader_ended_is_said(status: int, said: bytes, reason: str) -> None:
    assert gpus.Death(status, said).reason == reason


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there is it told otherwise")
def test_peak_memory_is_not_that_of_who_started_us() -> None:
    large = f"""
import subprocess, sys
kept = b"x" * 300_000_000
small = "import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\\n" \
    "from profiler.record.used import peak_memory; print(peak_memory())"
print(subprocess.run([sys.executable, "-c", small], capture_output=True, text=True, preexec_fn=int).stdout)
"""
    done = subprocess.run([sys.executable, "-c", large], capture_output=True, text=True, timeout=60)
    assert 5_000_000 < int(done.stdout) < 150_000_000
