"""A day with eight GPUs at 10 Hz, time compressed: does the recorder's memory grow, how large is the file?

    python tests/bench/soak.py [--hours 24] [--gpus 8] [--rate 10] [--cores 64]
                                [--minutes M] [--keep FILE] [--culprits]

The recorder's own sources (GPUs by the stand-in library, host, target's processes, spool), its output,
overhead, anchors and writer in simulated time: see day.py for what happens in that day. All is in one
process, also what reads the GPUs, which tells the recorder by its pipe as ever. Printed four times a
simulated hour: memory of the process, the file, CPU. `--culprits` tells which lines of code hold what has
grown, from the first quarter to the end; it is slower. `--minutes` ends it when so many real ones are over.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "profiler" / "probe"))

from profiler.record.absent import AbsentProbes
from profiler.record.clock import Clock
from profiler.record.output import Output
from profiler.record.overhead import Overhead
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from profiler.sources._gpus import gpu_sources
from profiler.sources._wire import PipeSink, Taker
from profiler.sources.host import HostSource
from profiler.sources.spool import SpoolSource
from profiler.sources.tree import TargetTree
from tests.bench.day import Gpus, Host, Programs
from tests.bench.simulated import Time, resident, slope
from tests.bench.verdicts import tell

MB = 1_000_000
GROWTH, LARGEST = 1.0, 700.0  # MB an hour; MB a day
EVENTS = 2000  # told in a day in which everything flaps
LINES = 12  # of culprits
COMMITS, LOOKS = 5, 5  # a second, of the writer and at the spool


class Recorder:
    """What `profiler.record.recorder` does at each of its turns, without its threads."""

    def __init__(self, path: Path, spool: Path, gpus: Gpus) -> None:
        self.clock = Clock()
        self.writer = RunWriter.create(path, {"name": "soak", "kind": "record",
                                              "start_ns": self.clock.start_wall_ns}, clock=time.monotonic)
        tree = TargetTree(os.getpid(), self.writer.add_process(os.getpid(), "target", command="train.py"))
        devices: dict[str, int] = {}
        self._pipe, fd = os.pipe()
        self._sent, self._taken = PipeSink(fd), Taker(self.writer, devices, lambda message: None)
        self.fast, self.slow = gpu_sources(tree)[0]
        self.host = HostSource(tree)
        self.spool = SpoolSource(spool, tree, devices)
        self._output = Output(self.writer)
        self._overhead = Overhead([], SimpleNamespace(ticks={}, cpu_share=0.0))
        self._absent = AbsentProbes(tree.processes, spool)
        gpus.show(0, time.time_ns())
        for source in (self.fast, self.slow):
            source.open(self._sent, self.clock)
        for source in (self.host, self.spool):
            source.open(self.writer, self.clock)

    def turn(self, tick: int, rate: int) -> None:
        """One tick of the GPUs, and whatever else is due with it."""
        sink, clock = self.writer, self.clock
        self.fast.read(self._sent, clock)
        if tick % rate == 0:
            self.slow.read(self._sent, clock)
        self._pass_on()
        if tick % max(rate // LOOKS, 1) == 0:
            self.spool.read(sink, clock)
            self._output.add(b"step 100 loss 1.234 lr 0.001\n" * 4)
            self._output.flush(clock.now_ns())
        if tick % max(rate // 2, 1) == 0:
            self.host.read(sink, clock)
        if tick % rate == 0:
            self._overhead.sample(sink, clock)
            self._absent.tick(sink, clock)
        if tick % (60 * rate) == 0:
            clock.add_anchor()
            sink.set_meta("anchors", clock.anchors)
        if tick % max(rate // COMMITS, 1) == 0:
            sink.commit()

    def _pass_on(self) -> None:
        """What the process with the GPUs sends is taken. All of a tick fits into the pipe."""
        self._sent.flush()
        os.set_blocking(self._pipe, False)
        with suppress(BlockingIOError):
            while data := os.read(self._pipe, 1 << 16):
                self._taken.feed(data)

    def end(self) -> None:
        for source in (self.slow, self.fast):
            source.close(self._sent, self.clock)
        self._pass_on()
        for source in (self.spool, self.host):
            source.close(self.writer, self.clock)
        self.writer.finish("finished", self.clock.now_ns())


def soak(path: Path, folder: Path, args: argparse.Namespace) -> bool:
    count, rate = args.gpus, args.rate
    end_s = time.monotonic() + 60 * args.minutes
    real = time.monotonic
    passing = Time()
    passing.install()
    spool = folder / "spool"
    spool.mkdir()
    gpus, host, programs = Gpus(folder, count, rate), Host(args.cores), Programs(spool)
    host.install()
    recorder = Recorder(path, spool, gpus)
    memory: list[tuple[float, float]] = []
    before = None
    cpu = time.process_time()
    ticks = round(args.hours * 3600 * rate)
    print(f"{'hour':>5} {'memory MB':>10} {'file MB':>8} {'CPU s':>7}", flush=True)
    for tick in range(1, ticks + 1):
        passing.go_to(tick / rate)
        gpus.show(tick / rate, time.time_ns())
        if tick % rate == 0:
            programs.turn(tick // rate)
        recorder.turn(tick, rate)
        if tick % (3600 * rate // 4) == 0 or tick == ticks:
            hour = tick / rate / 3600
            memory.append((hour, resident() / MB))
            size = path.stat().st_size / MB
            spent = time.process_time() - cpu
            print(f"{hour:5.2f} {memory[-1][1]:10.1f} {size:8.1f} {spent:7.0f}", flush=True)
            if real() >= end_s:
                break
            if args.culprits and before is None and tick >= ticks // 4:
                tracemalloc.start(1)
                before = tracemalloc.take_snapshot()
    if before is not None:
        tell_culprits(before)
    programs.end()
    recorder.end()
    return told(path, memory[-1][0], memory)


def tell_culprits(before: tracemalloc.Snapshot) -> None:
    """Where what has grown was allocated."""
    print("held now and not at the first quarter:")
    for entry in tracemalloc.take_snapshot().compare_to(before, "lineno")[:LINES]:
        print(f"{entry.size_diff / 1024:10.0f} KiB {entry.count_diff:9} objects  {entry.traceback}")


def told(path: Path, hours: float, memory: list[tuple[float, float]]) -> bool:
    """The verdicts."""
    size = path.stat().st_size / MB
    settled = [point for point in memory if point[0] >= min(1.0, hours / 4)]  # blocks that fill first
    grown = slope(settled) if len(settled) > 2 else float("nan")
    with Run.open(path) as run:
        samples = sum(len(run.values(track.id)[0]) for track in run.tracks)
        kinds: dict[str, int] = {}
        for event in run.events():
            kinds[event.kind] = kinds.get(event.kind, 0) + 1
        tracks, processes = len(run.tracks), len(run.processes)
    day = size / hours * 24
    print(f"{samples} samples on {tracks} tracks, {processes} processes, "
          f"{size / samples * MB:.2f} bytes a sample")
    print("events:", ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items(), key=lambda item: -item[1])))
    whole = "" if hours >= 24 else f", by {hours:g} hours"
    verdicts = [(grown < GROWTH, f"memory grows by {grown:.2f} MB a simulated hour (below {GROWTH:g})"),
                (day < LARGEST, f"the file has {day:.0f} MB a day{whole} (below {LARGEST:g})"),
                (sum(kinds.values()) <= EVENTS, f"{sum(kinds.values())} events were told (at most {EVENTS})")]
    return tell(verdicts)


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="leave the run here")
    parser.add_argument("--culprits", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = args.keep or Path(name) / "soak.stepscope"
        good = soak(path, Path(name), args)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
