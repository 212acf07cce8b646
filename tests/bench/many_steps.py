"""Many steps through the spool into a run, and what reads them: does anything slow down or grow?

    python tests/bench/many_steps.py [--steps 10000000] [--parts 10] [--keep FILE] [--read FILE]

Steps of 1 ms with times of CUDA events, memory ten times a second and figures of the loop's thread, written
by the probe's spool and read by the recorder's source into a real run file, in simulated time. Printed for
each part of the run: CPU of a step, and the memory of the process. Then the commands that read such a run,
each in a process of its own: seconds of CPU and the largest memory. `--read` does only that, on a file.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "profiler" / "probe"))

from _stepscope_probe.spool import Spool

from profiler.record.clock import Clock
from profiler.run.writer import RunWriter
from profiler.sources.spool import SpoolSource
from tests.bench.simulated import SECOND, Time, resident, slope
from tests.bench.verdicts import tell

ROOT = Path(__file__).resolve().parents[2]
MB = 1_000_000
STEP_NS = 1_000_000
TURN = 200  # steps between two looks of the recorder
GROWTH = 8.0  # MB over the whole run: a recorder that kept 1 byte of a step would show
SLOWER = 1.25  # the last part against the first, in CPU a record
UUID = "GPU-00000000-0000-0000-0000-000000000001"


def written(rng: random.Random, first: int, count: int, t0: int) -> str:
    """Lines of `count` steps from number `first` on, as a probe sends them."""
    lines = []
    for index in range(first, first + count):
        t1 = t0 + STEP_NS
        data, h2d, forward = rng.randrange(180_000, 260_000), rng.randrange(20_000, 30_000), 200_000
        forward += rng.randrange(30_000)
        backward, optimizer = 310_000 + rng.randrange(20_000), 60_000 + rng.randrange(9_000)
        lines.append(f'["step",{index},{t0},{t1},{data},{h2d},{forward},{backward},{optimizer},'
                     f"{data // 3},{data + forward},64,1,0,0,0]\n")
        if index % 4 == 0:
            lines.append(f'["device",{index},{{"h2d":{h2d - 2000},"forward":{forward + 9000},'
                         f'"backward":{backward + 12000},"optimizer":{optimizer}}},'
                         f'{{"data":{data // 2},"h2d":100,"forward":{h2d},"backward":{forward // 2},'
                         f'"optimizer":{optimizer // 2}}}]\n')
        if index % 100 == 0:
            used = 20 * MB * rng.randrange(90, 100)
            lines.append(f'["memory",{t1},0,{used},{used + MB},{used},0,0]\n')
            lines.append(f'["thread",{t1},{index * 1000},{index * 500},{index},{index // 3},4]\n')
        t0 = t1
    return "".join(lines)


def record(path: Path, steps: int, parts: int) -> bool:
    """Write the run. Whether it neither slowed down nor grew."""
    clock_of_all = Time()
    clock_of_all.install()
    rng = random.Random(1)
    costs: list[float] = []
    memory: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        writer = RunWriter.create(path, {"name": "steps", "kind": "record", "start_ns": clock.start_wall_ns})
        device = writer.add_device(UUID, 0, "H200", memory_total=143_771 << 20)
        spool = Spool(folder)
        source = SpoolSource(Path(folder), devices={UUID: device})
        source.open(writer, clock)
        spool.write(f'["hello",{{"version":1,"pid":{os.getpid()},"t":{time.monotonic_ns()},"argv":["train.py"]}}]\n'
                    f'["torch",{{"uuid":{{"0":"{UUID}"}}}}]\n'
                    '["loader",{"train":true,"workers":4,"batch":64}]\n')
        begin = time.monotonic_ns()
        print(f"{'steps':>10} {'us of CPU/step':>15} {'read':>7} {'commit':>7} {'memory MB':>10}", flush=True)
        for part in range(parts):
            read = committed = 0.0
            for first in range(steps // parts * part, steps // parts * (part + 1), TURN):
                spool.write(written(rng, first, TURN, begin + first * STEP_NS))
                clock_of_all.go_to((first + TURN) * STEP_NS / SECOND)
                start = time.thread_time()
                source.read(writer, clock)
                between = time.thread_time()
                writer.commit()
                read += between - start
                committed += time.thread_time() - between
            each = steps // parts / 1e6
            costs.append((read + committed) / each)
            memory.append((part + 1, resident() / MB))
            print(f"{steps // parts * (part + 1):10} {costs[-1]:15.1f} {read / each:7.1f} "
                  f"{committed / each:7.1f} {memory[-1][1]:10.1f}", flush=True)
        source.close(writer, clock)
        assert not spool.dropped, "the spool had no room"
        writer.finish("finished", clock.now_ns())
    ratio, grown = costs[-1] / costs[0], slope(memory[1:]) * (parts - 1)
    print(f"{source.steps_seen} steps are in the run, {path.stat().st_size / MB:.0f} MB, "
          f"{path.stat().st_size / steps:.1f} bytes a step")
    return tell([(ratio <= SLOWER, f"the last part cost {ratio:.2f} times the first (at most {SLOWER})"),
                 (grown <= GROWTH, f"memory grew by {grown:.1f} MB over the run (at most {GROWTH:g})"),
                 (source.steps_seen == steps, f"{source.steps_seen} of {steps} steps were kept")])


def read(path: Path) -> bool:
    """The commands that read a run, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "open": [sys.executable, "-c", "import sys; from profiler.run.reader import Run; "
                     "run = Run.open(sys.argv[1]); "
                     "[run.series(t.id, points=1600) for t in run.find('step.wall')]", str(path)],
            "diagnose": [sys.executable, "-P", "stepscope.py", "diagnose", str(path), "--json"],
            "report": [sys.executable, "-P", "stepscope.py", "report", str(path), "-o", f"{folder}/r.html"],
        }
        good = True
        print(f"{'':10} {'CPU s':>8} {'memory MB':>10}")
        for name, command in commands.items():
            cpu, peak, code, said = measured(command)
            good = good and code == 0
            print(f"{name:10} {cpu:8.1f} {peak / MB:10.0f}  "
                  f"{'' if code == 0 else f'ended with {code}: {said}'}", flush=True)
    return good


def measured(command: list[str]) -> tuple[float, int, int, str]:
    """Seconds of CPU, largest memory in B, exit status, and the end of what it told."""
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=told)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        said = told.read().decode(errors="replace").strip()[-300:]
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, process.returncode, said


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="leave the run here")
    parser.add_argument("--read", type=Path, help="only read this run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "steps.stepscope"
        good = True
        if args.read is None:
            good = record(path, args.steps, args.parts)
        good = read(args.read or path) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
