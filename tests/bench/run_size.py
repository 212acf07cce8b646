"""How large a run gets and how fast it opens: eight GPUs with 14 metrics each, at 10 Hz.

    python tests/bench/run_size.py [--hours 0.5] [--gpus 8] [--rate 10] [--keep FILE]

Times are simulated, as fast as the machine can; ticks come late as those of a thread do, values have
the steps and the noise that NVML shows. Prints bytes per sample, the projection to a day, what a commit
costs of a core, and the time to open the run and to draw a series of it at full zoom-out.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from profiler.run.reader import Run
from profiler.run.writer import RunWriter

START = 1_700_000_000_000_000_000
MB = 1_000_000
METRICS = ("util", "mem_util", "mem_used", "mem_reserved", "mem_free", "power", "energy", "temperature",
           "clock_sm", "clock_mem", "throttle", "pcie_rx", "pcie_tx", "processes")


def gpu(rng: random.Random, rate: float) -> Iterator[tuple[float, ...]]:
    """Values of METRICS, tick by tick: what a training run on a large GPU looks like through NVML."""
    total, reserved = 143_771 << 20, 600 << 20
    util, memory, energy, used, heat = 90, 40, 1e9, 60 << 30, 55.0
    while True:
        busy = rng.random() > 0.02
        if rng.random() < 5 / rate:  # the driver renews these a few times a second
            util = min(max(int(rng.gauss(92 if busy else 20, 5)), 0), 100)
            memory = min(max(int(rng.gauss(45 if busy else 5, 4)), 0), 100)
        if rng.random() < 0.02:
            used += rng.randrange(-32, 33) << 21
        power = max(int(rng.gauss(580_000 if busy else 150_000, 15_000)), 70_000)
        energy += power / rate
        heat += ((58 if busy else 45) - heat) * 0.02 + rng.gauss(0, 0.1)
        clock = 1980 - 15 * int(abs(rng.gauss(0, 2)))
        yield (util / 100, memory / 100, used, reserved, total - reserved - used, power / 1000,
               int(energy) / 1000, round(heat), clock, 2619, 4 if rng.random() < 0.01 else 0,
               int(rng.expovariate(1 / 2e6)) << 10, int(rng.expovariate(1 / 5e5)) << 10, 1)


def record(path: Path, hours: float, gpus: int, rate: float) -> dict[str, float]:
    """Write the run; seconds of CPU spent in `sample` and in `commit`, and the longest commit."""
    rng = random.Random(1)
    now = [0.0]
    writer = RunWriter.create(path, {"name": "size", "start_ns": START}, clock=lambda: now[0])
    devices = [writer.add_device(f"GPU-{i}", i, "H200") for i in range(gpus)]
    tracks = [[writer.track(f"gpu.{name}", device=device) for name in METRICS] for device in devices]
    sources = [gpu(rng, rate) for _ in devices]
    ticks = int(hours * 3600 * rate)
    costs = {"sample": 0.0, "commit": 0.0, "longest": 0.0}
    for tick in range(ticks):
        due = tick / rate
        late = rng.expovariate(1 / 80_000) + (rng.random() < 0.03) * rng.uniform(0, 5e6)
        at = START + int(due * 1e9 + late)
        values = [next(source) for source in sources]
        times = [[at := at + int(rng.gauss(25_000, 4_000)) for _ in METRICS] for _ in devices]
        begin = time.thread_time()
        for row, stamps, readings in zip(tracks, times, values, strict=True):
            for track, stamp, value in zip(row, stamps, readings, strict=True):
                writer.sample(track, stamp, value)
        sampled = time.thread_time()
        if due - now[0] >= 0.1 - 1e-9:
            now[0] = due
            writer.commit()
        cost = time.thread_time() - sampled
        costs["sample"] += sampled - begin
        costs["commit"] += cost
        costs["longest"] = max(costs["longest"], cost)
    now[0] = ticks / rate
    writer.finish("finished", START + int(now[0] * 1e9))
    return costs


def timed(what: Callable[[], object], repeat: int = 5) -> float:
    """The median time of a call, in ms."""
    spent = []
    for _ in range(repeat):
        begin = time.perf_counter()
        what()
        spent.append((time.perf_counter() - begin) * 1000)
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=0.5)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--rate", type=float, default=10.0, help="samples a second of each metric")
    parser.add_argument("--keep", type=Path, help="leave the run here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "size.stepscope"
        costs = record(path, args.hours, args.gpus, args.rate)
        seconds = args.hours * 3600
        samples = int(seconds * args.rate) * args.gpus * len(METRICS)
        size = path.stat().st_size
        what = f"{args.gpus} GPUs x {len(METRICS)} metrics, {args.hours:g} h at {args.rate:g} Hz"
        print(f"{what}: {samples} samples")
        print(f"{size / samples:8.2f} bytes a sample")
        print(f"{size / MB * 24 / args.hours:8.0f} MB a day (aim for 8 GPUs at 10 Hz: below 700)")
        print(f"{costs['sample'] / seconds * 100:8.2f} % of a core to hand samples over")
        print(f"{costs['commit'] / seconds * 100:8.2f} % of a core to commit")
        print(f"{costs['longest'] * 1000:8.1f} ms of CPU for the longest commit")

        def open_and_draw() -> None:
            with Run.open(path) as run:
                run.series(run.find("gpu.power")[0].id, points=1600)

        print(f"{timed(lambda: Run.open(path).close()):8.1f} ms to open")
        print(f"{timed(open_and_draw):8.1f} ms to open and read one series at full zoom-out, 1600 points")
        with Run.open(path) as run:
            track = run.find("gpu.power")[0].id
            middle = START + int(seconds * 5e8)
            minute = (middle, middle + 60 * 10**9, 1600)
            print(f"{timed(lambda: run.series(track, *minute)):8.1f} ms for one minute in the middle")
            print(f"{timed(lambda: run.values(track)):8.1f} ms for all samples of a series")


if __name__ == "__main__":
    main()
