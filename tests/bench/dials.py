"""Whether the faults' dials act: pairs of a healthy control and of the same with one dial at 1, on the CPU.

    python tests/bench/dials.py [FAULT ...] [--pairs 3] [--strength 1] [--keep FOLDER] [--json]

Each recording is made as a user makes it, pairs alternate, C F, F C, ... For each fault that can
act on a CPU the table tells the ratio of the loop's wall time (from the first step's begin to the
last one's end: warm-up, epoch starts and stalls are in it, the start of Python is not), the
median over pairs and their range; the range that the fault states; the stage that grows most and
the stage it states; and the verdict of `stepscope diagnose` beside the one it must bring, with
the control's. The exit status is 1 when a ratio or a stage is not as stated. A verdict is told
and decides nothing: it is the rules that it tests.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profiler.analysis.steps import load_steps, step_processes  # noqa: E402
from profiler.catalog import FaultInfo  # noqa: E402
from profiler.catalog import fault as fault_info  # noqa: E402
from profiler.errors import ProfilerError  # noqa: E402
from profiler.experiments.matrix.cases import control_settings, faulty_settings, program  # noqa: E402
from profiler.experiments.matrix.play import recorded  # noqa: E402
from profiler.model import STAGES  # noqa: E402
from profiler.rules.verdict import diagnose  # noqa: E402
from profiler.run.reader import Run  # noqa: E402
from workloads import _faults  # noqa: E402

LIMIT_S = 300.0  # of one recording


@dataclass(frozen=True)
class Loop:
    """What one recording measured, over all steps of its loop. Times in seconds."""

    wall: float
    stages: Mapping[str, float]
    steps: int
    verdict: str
    also: tuple[str, ...]
    rules: tuple[str, ...]  # of the findings, in their order

    @property
    def words(self) -> tuple[str, ...]:
        return self.verdict, *self.also


@dataclass(frozen=True)
class Dial:
    """A fault against its control."""

    fault: ModuleType
    pairs: tuple[tuple[Loop, Loop], ...]  # (control, fault)

    @property
    def ratios(self) -> list[float]:
        return sorted(bad.wall / good.wall for good, bad in self.pairs)

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def growth(self) -> dict[str, float]:
        """Milliseconds a step that each stage takes more, the median over pairs."""
        return {stage: 1e3 * statistics.median(bad.stages[stage] / bad.steps - good.stages[stage] / good.steps
                                               for good, bad in self.pairs) for stage in STAGES}

    @property
    def grown(self) -> str:
        """The stage that grows most."""
        return max(STAGES, key=lambda stage: self.growth[stage])

    @property
    def in_range(self) -> bool:
        low, high = self.fault.FACTOR
        return bool(low <= self.ratio <= high)

    @property
    def holds(self) -> bool:
        """Whether wall time and stage grow as the fault states."""
        return self.in_range and self.grown == self.fault.STAGE

    @property
    def named(self) -> bool:
        """Whether the diagnosis of every run with the fault brings its verdict and its rule."""
        return all(self.fault.RULE in bad.rules and wanted_verdict(self.fault) == bad.verdict
                   for _, bad in self.pairs)

    def to_json(self) -> dict[str, Any]:
        return {"fault": self.fault.NAME, "ratio": self.ratio, "ratios": self.ratios, "holds": self.holds,
                "factor": self.fault.FACTOR, "grown": self.grown, "stage": self.fault.STAGE,
                "growth_ms": self.growth, "named": self.named, "rule": self.fault.RULE,
                "verdict": wanted_verdict(self.fault),
                "pairs": [{"control": asdict(good), "fault": asdict(bad)} for good, bad in self.pairs]}


def on_cpu() -> list[ModuleType]:
    """The faults that state what they cost on a CPU."""
    return [fault for fault in map(_faults.fault, _faults.names()) if fault.FACTOR]


def wanted_verdict(fault: ModuleType) -> str:
    """The word that a run on the CPU must bring."""
    return str(getattr(fault, "ON_CPU", fault.VERDICT))


def measure(fault: ModuleType, folder: Path, pairs: int = 3, strength: float = 1.0,
            more: Mapping[str, Any] | None = None) -> Dial:
    """Record pairs in `folder`. `more`: settings of both arms, over those of the control."""
    info = fault_info(fault.NAME)
    control = control_settings(info, more)
    arms = {"control": control, "fault": faulty_settings(info, control, strength)}
    found = []
    for number in range(pairs):
        order = ("fault", "control") if number % 2 else ("control", "fault")
        loops = {arm: record(info, arms[arm], folder / f"{fault.NAME}-{number + 1}-{arm}.stepscope")
                 for arm in order}
        found.append((loops["control"], loops["fault"]))
    return Dial(fault, tuple(found))


def record(info: FaultInfo, settings: Mapping[str, Any], output: Path) -> Loop:
    """Record the fault's first workload with these settings. TargetError when it fails."""
    recorded(program(info, settings, output.parent), output, LIMIT_S)
    return read(output)


def read(path: Path) -> Loop:
    """The loop in a recording; of several ranks that of the lowest."""
    with Run.open(path) as run:
        ranks = {process.id: process.rank or 0 for process in run.processes}
        process = min(step_processes(run), key=lambda one: ranks[one])
        steps = load_steps(run, process)
        steps = steps.select(steps.counted)
        told = diagnose(run)
    return Loop(wall=float(steps.t1_ns[-1] - steps.t0_ns[0]) / 1e9,
                stages={stage: float(ns.sum()) / 1e9 for stage, ns in steps.stages.items()},
                steps=len(steps), verdict=told.verdict, also=told.decision.also,
                rules=tuple(finding.rule for finding in told.findings))


def row(dial: Dial) -> str:
    """One line of the table."""
    fault, ratios = dial.fault, dial.ratios
    low, high = fault.FACTOR
    good, bad = dial.pairs[-1]
    named = "" if dial.named else f"  wanted {wanted_verdict(fault)} by {fault.RULE}"
    return (f"{'ok  ' if dial.holds else 'FAIL'} {fault.NAME:24} {dial.ratio:5.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f})  states {low:g} to {high:g}  "
            f"{dial.grown} +{dial.growth[dial.grown]:.1f} ms"
            f"{'' if dial.grown == fault.STAGE else f', states {fault.STAGE}'}; "
            f"{good.verdict} -> {', '.join(bad.words)} [{', '.join(bad.rules)}]{named}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = {fault.NAME: fault for fault in on_cpu()}
    parser.add_argument("faults", metavar="FAULT", nargs="*", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--strength", type=float, default=1.0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    if unknown := sorted(set(args.faults) - set(known)):
        parser.error(f"no fault that states its cost on a CPU: {', '.join(unknown)}")
    dials = []
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for fault in args.faults or known:
            try:
                dials.append(measure(known[fault], folder, args.pairs, args.strength))
            except ProfilerError as error:
                raise SystemExit(str(error)) from error
            if not args.json:
                print(row(dials[-1]), flush=True)
    if args.json:
        print(json.dumps([dial.to_json() for dial in dials], indent=1))
    else:
        print(f"{sum(d.holds for d in dials)} of {len(dials)} dials act as stated, "
              f"{sum(d.named for d in dials)} are named by the diagnosis; {args.pairs} pairs each")
    return 0 if all(d.holds for d in dials) else 1


if __name__ == "__main__":
    sys.exit(main())
