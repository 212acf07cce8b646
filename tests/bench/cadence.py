"""How punctual sampling is, and what it costs: eight stand-in GPUs at 100 Hz, beside nvitop's collector.

    python tests/bench/cadence.py [--seconds 20] [--rounds 3] [--rate 100] [--gpus 8] [--nvitop PYTHON]

`stepscope monitor`, and where PYTHON is an interpreter that has nvitop its ResourceMetricCollector, at the
same interval on the same stand-in library, by turns. Lateness of a tick is its distance from a grid of exact
intervals, as the times of stored samples tell it; a tick that is a whole interval late is missed. A collector
that sleeps one interval after each look has no grid: of it, and of ours beside it, how much longer than asked
the time between two looks is (`str.`). CPU is of all processes, of a core; `whole` with start and end. The
verdicts mean something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from profiler.run.reader import Run
from tests.bench.verdicts import tell
from tests.fakes import nvml

ROOT = Path(__file__).resolve().parents[2]
OTHER = Path(__file__).with_name("cadence_nvitop.py")
START_NS = 3_000_000_000  # of a recording, in which programs start and files are made
EARLY_NS = 50_000  # before the usual place a tick may be: calls take more and less time
LATE_MS, CPU = 2.0, 0.10


@dataclass
class Measured:
    """Times in ms. `cpu`: share of a core, of a usual second, and over all; `rss` in MB."""

    late: np.ndarray | None
    stretch: np.ndarray
    missed: float
    rate: float
    cpu: float
    whole: float
    rss: float


def lateness(t_ns: np.ndarray, interval_ns: int) -> np.ndarray:
    """How far each time lies behind its place on the grid that is least behind of them all, ms."""
    places = (t_ns - t_ns[0]) % interval_ns
    begins = np.unique(np.percentile(places, np.arange(0, 100, 0.5), method="nearest")) - EARLY_NS
    return min(((places - begin) % interval_ns / 1e6 for begin in begins), key=np.mean)


def told(t_ns: np.ndarray, interval_ns: int) -> tuple[np.ndarray, float, float]:
    """(stretch of each interval in ms, share of ticks missed, rate in Hz)."""
    between = np.diff(t_ns)
    wanted = (t_ns[-1] - t_ns[0]) / interval_ns
    return (np.maximum(between - interval_ns, 0) / 1e6, max(0.0, 1 - len(between) / wanted),
            len(between) * 1e9 / (t_ns[-1] - t_ns[0]))


def run_measured(command: list[str], env: dict[str, str]) -> tuple[float, str]:
    """Share of a core that a command and its children took, and what it printed."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - begin
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}: {text[-500:]}")
    return (usage.ru_utime + usage.ru_stime) / took, text


def ours(folder: Path, env: dict[str, str], rate: float, seconds: float) -> Measured:
    path = folder / f"{time.monotonic_ns()}.stepscope"
    command = [sys.executable, "-P", str(ROOT / "stepscope.py"), "monitor", "--rate", f"{rate:g}",
               "--duration", f"{seconds + START_NS / 1e9:g}", "-o", str(path)]
    whole, _ = run_measured(command, env)
    with Run.open(path) as run:
        t_ns, _ = run.values(run.find("gpu.util")[0].id)
        t_ns = t_ns[t_ns >= t_ns[0] + START_NS]
        at, shares = run.values(run.find("recorder.cpu")[0].id)
        steady = shares[(at > t_ns[0]) & (at < t_ns[-1] - 10**9)]
        rss = run.meta["overhead"]["peak_rss"] / 1e6
    interval = round(1e9 / rate)
    return Measured(lateness(t_ns, interval), *told(t_ns, interval), float(np.median(steady)), whole, rss)


def theirs(python: str, env: dict[str, str], rate: float, seconds: float) -> Measured:
    whole, text = run_measured([python, str(OTHER), f"{rate:g}", f"{seconds:g}"], env)
    said = json.loads(text.splitlines()[-1])
    t_ns = np.array(said["t_ns"])
    return Measured(None, *told(t_ns, round(1e9 / rate)), said["cpu"], whole, said["rss"] / 1e6)


def line(name: str, found: list[Measured]) -> str:
    """Medians over the rounds."""

    def middle(values: list[float]) -> float:
        return statistics.median(values)

    def spread(columns: list[np.ndarray | None]) -> str:
        if any(column is None for column in columns):
            return f"{'-':>8}{'-':>8}{'-':>8}"
        return "".join(f"{middle([float(np.percentile(c, p)) for c in columns]):8.2f}" for p in (50, 99, 100))

    return (f"{name:12}{spread([m.late for m in found])}{spread([m.stretch for m in found])}"
            f"{middle([m.missed for m in found]):8.2%}{middle([m.rate for m in found]):8.1f}"
            f"{middle([m.cpu for m in found]):8.1%}{middle([m.whole for m in found]):8.1%}"
            f"{middle([m.rss for m in found]):8.0f}")


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--nvitop", help="a Python that has nvitop")
    args = parser.parse_args()
    mine: list[Measured] = []
    other: list[Measured] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = nvml.Plan(folder / "plan", f"gpus {args.gpus}", "util 50", "gpm_rates 1", "procs 1")
        env = {**nvml.environment(nvml.build(folder / "library"), plan), nvml.STATIC: "1"}
        print(f"{args.gpus} GPUs at {args.rate:g} Hz, {args.rounds} turns of {args.seconds:g} s, load "
              f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for _ in range(args.rounds):
            mine.append(ours(folder, env, args.rate, args.seconds))
            if args.nvitop:
                other.append(theirs(args.nvitop, env, args.rate, args.seconds))
    print(f"{'':12}{'late p50':>8}{'p99':>8}{'max ms':>8}{'str. p50':>8}{'p99':>8}{'max ms':>8}{'missed':>8}"
          f"{'Hz':>8}{'CPU':>8}{'whole':>8}{'RSS MB':>8}")
    print(line("stepscope", mine))
    if other:
        print(line("nvitop", other))
    late = statistics.median(float(np.percentile(m.late, 99)) for m in mine if m.late is not None)
    cpu = statistics.median(m.cpu for m in mine)
    verdicts = [(late < LATE_MS, f"99th percentile of lateness {late:.2f} ms (below {LATE_MS:g})"),
                (cpu < CPU, f"CPU {cpu:.1%} of a core (below {CPU:.0%})")]
    return 0 if tell(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
