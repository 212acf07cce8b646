"""What recording costs: CPU of the recorder with eight stand-in GPUs, at 10 and 100 samples per second.

    python tests/bench/recorder_cost.py [--seconds S] [--gpus N] [--rates HZ ...]

Runs `stepscope monitor` for some seconds per rate and reads the cost from the run file
it wrote. `whole` is all CPU time over all wall time, the start included; `steady` is
the median second without the first three and the last. The stand-in library reads its
plan once here, so that next to nothing of the figure is its own. Aim at 10 Hz: below 1 %
of a core.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from profiler.run.reader import Run
from tests.fakes import nvml

ROOT = Path(__file__).resolve().parents[2]
START_NS, END_NS = 3_000_000_000, 1_000_000_000


def measure(folder: Path, library: Path, gpus: int, rate: float, seconds: float) -> str:
    """One line: CPU as a share of a core, and whether the asked rate was reached."""
    plan = nvml.Plan(folder / "plan", f"gpus {gpus}", "util 50")
    path = folder / f"{rate:g}.stepscope"
    command = [sys.executable, "-P", str(ROOT / "stepscope.py"), "monitor", "--rate", f"{rate:g}"]
    command += ["--duration", f"{seconds:g}", "-o", str(path)]
    env = {**nvml.environment(library, plan), nvml.STATIC: "1"}
    subprocess.run(command, check=True, env=env, capture_output=True)
    run = Run.open(path)
    try:
        overhead = run.meta["overhead"]
        (track,) = run.find("recorder.cpu")
        t_ns, shares = run.values(track.id)
        t0, t1 = t_ns[0] + START_NS, t_ns[-1] - END_NS
        steady = [float(share) for t, share in zip(t_ns, shares, strict=True) if t0 < t < t1]
        fast = overhead["sources"]["nvml"]
        samples = sum(len(run.values(t.id)[0]) for t in run.tracks if t.metric.startswith("gpu."))
    finally:
        run.close()
    middle = statistics.median(steady) if steady else float("nan")
    spread = f"{min(steady):.2%} to {max(steady):.2%}" if steady else "no steady second"
    return (
        f"{rate:5g} Hz  {gpus} GPUs  whole {overhead['cpu_share']:.2%}  steady {middle:.2%} ({spread})  "
        f"reached {fast['rate_hz']:.1f} Hz, missed {fast['missed']}, "
        f"latest {fast['lateness_max_ns'] / 1e6:.1f} ms  {samples} GPU samples"
    )


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--rates", type=float, nargs="+", default=[10.0, 100.0])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = nvml.build(folder / "library")
        print("CPU of the recorder, share of one core")
        for rate in options.rates:
            print(measure(folder, library, options.gpus, rate, options.seconds), flush=True)


if __name__ == "__main__":
    main()
