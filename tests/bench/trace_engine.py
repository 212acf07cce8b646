"""How fast a large trace is diagnosed, in how much memory, beside HTA on the same file.

    python tests/bench/trace_engine.py [--hta PYTHON] [--repeats 3] [--source TRACE ...] [--gz]
    python tests/bench/trace_engine.py --curve 250000,500000,1000000,2000000,4000000,10000000

The file is made by `trace_big.py`, for each source in turn. Whole processes are measured, from start to
exit: wall time, and the peak resident memory that the kernel counted of the largest process, or that was
seen of a process and its children together, in a run of its own, where that is more. HTA (`traceinsight`
0.6.1) does construction, temporal, idle-time and kernel breakdown, overlap, launch statistics, queue length
and memory bandwidth; it runs under `--hta`, a Python that has it, or under a venv that is made for the
occasion. Repeats alternate; medians are compared. `--curve` runs ours alone, over growing files. The exit
status is 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests/bench"
TRACES = ROOT / "../shared/reference/traces"
# Times in floats and few arguments; whole microseconds, collectives and memory.
SOURCES = [TRACES / "v100_float_epoch_us.json.gz", TRACES / "v100_ddp_rank1of2.json.gz"]
HTA_PACKAGE = "traceinsight==0.6.1"
MB = 1_000_000
OURS = {"diagnose --no-what-if": ["--no-what-if"], "diagnose": []}
# Ours over HTA's: time at most, peak memory at most.
AIMS = {"diagnose --no-what-if": (0.1, 0.5), "diagnose": (0.2, 0.5)}
# Installed packages have their bytecode beside them; a checkout writes its own once, unless told not to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
CURVE_MEMORY = 2500  # MB at ten million events


@dataclass(frozen=True)
class Cost:
    """What a process took: wall time and processor time (children too) in seconds, peak memory in bytes."""

    seconds: float
    cpu: float
    peak: int
    output: str


def measure(command: Sequence[str | Path]) -> Cost:
    """Run a command to its end.

    The kernel's peak of a child counts the parent's memory at the fork, so this process must stay small:
    files are made elsewhere.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        child = subprocess.Popen([str(part) for part in command], stdout=out, stderr=err, cwd=ROOT,
                                 env=ENVIRONMENT)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {child.returncode}:\n"
                             f"{err.read().decode(errors='replace')[-2000:]}")
        return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,
                    out.read().decode(errors="replace"))


def together(command: Sequence[str | Path]) -> int:
    """Peak memory of a process and its children, bytes; shared pages count once. A look every 20 ms."""
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, cwd=ROOT,
                             stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    peak = 0
    while child.poll() is None:
        peak = max(peak, sum(_proportional(pid) for pid in _family(child.pid)))
        time.sleep(0.02)
    return peak


def _family(pid: int) -> list[int]:
    try:
        inside = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(one for child in inside for one in _family(int(child)))]


def _proportional(pid: int) -> int:
    try:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:  # it has ended
        return 0
    return int(found.group(1)) * 1024 if found else 0


def make(source: Path, out: Path, events: int) -> str:
    """Write the large trace; one line about it."""
    done = subprocess.run([sys.executable, BENCH / "trace_big.py", source, out, "--events", str(events)],
                          check=True, capture_output=True, text=True)
    return done.stdout.strip().partition(": ")[2]


def ours(trace: Path, *options: str) -> list[str | Path]:
    return [sys.executable, ROOT / "stepscope.py", "diagnose", trace, "--json", *options]


def hta_python(given: Path | None, folder: Path) -> Path:
    """A Python that has HTA."""
    if given:
        return given
    venv.create(folder / "hta", with_pip=True)
    python = folder / "hta/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", HTA_PACKAGE], check=True)
    return python


def compare(trace: Path, hta: Path, repeats: int) -> bool:
    """Alternate ours and HTA; whether every aim is met."""
    commands = {name: ours(trace, *options) for name, options in OURS.items()}
    commands["HTA"] = [hta, BENCH / "hta_analysis.py", trace]
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            costs[name].append(measure(command))
    seconds = {name: statistics.median(c.seconds for c in all_) for name, all_ in costs.items()}
    peak = {name: max(statistics.median(c.peak for c in all_), together(commands[name]))
            for name, all_ in costs.items()}
    print(f"{'':24} {'seconds':>8} {'range':>15} {'CPU s':>6} {'peak MB':>8} {'time/HTA':>9} "
          f"{'memory/HTA':>11}")
    met = True
    for name, all_ in costs.items():
        times = sorted(c.seconds for c in all_)
        spread = f"{times[0]:.2f} to {times[-1]:.2f}"
        cpu = statistics.median(c.cpu for c in all_)
        line = f"{name:24} {seconds[name]:8.2f} {spread:>15} {cpu:6.2f} {peak[name] / MB:8.0f}"
        if name in AIMS:
            ratio, memory = seconds[name] / seconds["HTA"], peak[name] / peak["HTA"]
            within = ratio <= AIMS[name][0] and memory <= AIMS[name][1]
            met &= within
            line += (f" {ratio:9.3f} {memory:11.3f}   aim {AIMS[name][0]:g} and {AIMS[name][1]:g}: "
                     f"{'met' if within else 'MISSED'}")
        print(line, flush=True)
    told = json.loads(costs["HTA"][-1].output.splitlines()[-1])
    print("HTA:", ", ".join(f"{name} {value:.2f} s" for name, value in told["seconds"].items()))
    return met


def curve(source: Path, folder: Path, sizes: Sequence[int], suffix: str) -> bool:
    """Time and memory over growing files; whether memory stays within its bound."""
    met = True
    print(f"{'file':44}" + "".join(f" {name:>46}" for name in OURS))
    for events in sizes:
        trace = folder / f"curve{suffix}"
        about = make(source, trace, events)
        made = int(about.split()[0])
        line = f"{about:44}"
        for options in OURS.values():
            cost = measure(ours(trace, *options))
            peak = max(cost.peak, together(ours(trace, *options)))
            line += (f" {cost.seconds:8.2f} s {peak / MB:5.0f} MB"
                     f" {cost.seconds / made * 1e6:5.2f} us/event, {cost.cpu / made * 1e6:4.2f} of CPU")
            met &= peak <= CURVE_MEMORY * MB
        trace.unlink()
        print(line, flush=True)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, action="append", help="the trace that is repeated")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gz", action="store_true", help="compress the large trace")
    parser.add_argument("--hta", type=Path, metavar="PYTHON", help="a Python that has traceinsight")
    parser.add_argument("--curve", metavar="EVENTS,EVENTS,...", help="ours alone, over these sizes")
    parser.add_argument("--folder", type=Path, help="where the large files are made and deleted")
    args = parser.parse_args()
    suffix = ".json.gz" if args.gz else ".json"
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        sources = args.source or SOURCES
        measure(ours(sources[0]))  # writes the bytecode
        if args.curve:
            sizes = [int(float(size)) for size in args.curve.split(",")]
            return 0 if curve(sources[-1], folder, sizes, suffix) else 1
        hta, met = hta_python(args.hta, folder), True
        for source in sources:
            trace = folder / f"large{suffix}"
            print(f"{source.name} repeated: {make(source, trace, args.events)}")
            met &= compare(trace, hta, args.repeats)
        return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
