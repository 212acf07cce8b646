"""Hold the engine against traces whose truth is known.

python -m tests.simulator.check DIR, or --labelled for the reference traces beside the repository.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from profiler.analysis.trace.breakdown.partition import partition
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steady import steady
from profiler.analysis.trace.steps import find
from profiler.importers import kineto
from profiler.rules.trace.diagnosis import diagnose
from tests.reference import LABELLED

REAL = 1.05  # true speedup from which a prediction is scored


@dataclass
class Outcome:
    """What the engine made of one trace."""

    file: str
    kind: str
    partition_error: float  # largest over classes, share of the mean window
    worst_class: str
    steps_agree: bool  # windows and counted steps are those of the truth
    verdict: str
    accepted: bool
    accept: list[str]
    replay_error: float | None
    withheld: str
    whole: bool  # the file has whole microseconds
    errors: list[tuple[float, str]] = field(
        default_factory=list
    )  # of scenarios with a real gain: |ratio - 1|
    false_gains: list[tuple[float, str]] = field(default_factory=list)  # of those without


def partition_error(truth: dict[str, Any], mean_ns: dict[str, float]) -> tuple[float, str]:
    """Largest |reported - mean of partition_ns over counted_steps| over classes, over the mean window."""
    rows = [s for s in truth["steps"] if s["number"] in truth["counted_steps"]]
    window = sum(s["ns"] for s in rows) / len(rows)
    names = {name for s in rows for name in s["partition_ns"]} | set(mean_ns)
    errors = []
    for name in names:
        true = sum(s["partition_ns"].get(name, 0) for s in rows) / len(rows)
        errors.append((abs(mean_ns.get(name, 0.0) - true) / window, name))
    return max(errors)


def check(path: Path, truth: dict[str, Any]) -> Outcome:
    """Import, partition, replay and verdict of one trace against its truth."""
    traces = kineto.load(path)
    j = Joined(traces[0])
    steps = find(j)
    found = steady(j, steps)
    parts = partition(j, steps)
    counted = steps.number[found.counted].tolist()
    error, worst = partition_error(truth, dict(parts.mean_ns))
    facts = diagnose(traces, path.name).shown
    verdict = facts.decision.verdict
    outcome = Outcome(
        path.name,
        truth["kind"],
        error,
        worst,
        found.kind == truth["windows"] and counted == truth["counted_steps"],
        verdict,
        verdict in truth["accept"],
        truth["accept"],
        facts.replay.error,
        facts.replay.withheld,
        traces[0].resolution_ns > 1,
    )
    if truth.get("what_if_scored", True):
        score(outcome, truth, facts.replay.speedups())
    return outcome


def score(outcome: Outcome, truth: dict[str, Any], predicted: dict[str, float]) -> None:
    """Add the errors of what-if predictions; one that is missing counts as a miss."""
    for row in truth["what_if"]:
        name, readings = row["scenario"], [row["speedup"], *(a["speedup"] for a in row["also"])]
        if name not in predicted:
            if row["speedup"] >= REAL:
                outcome.errors.append((1.0, f"{name}: true {row['speedup']:.3f}, not predicted"))
            continue
        error = min(abs(predicted[name] / true - 1) for true in readings)
        text = f"{name}: true {row['speedup']:.4f}, predicted {predicted[name]:.4f}"
        (outcome.errors if row["speedup"] >= REAL else outcome.false_gains).append((error, text))


def outcomes(folder: Path, only: str = "") -> Iterator[Outcome]:
    """Every trace of a folder in the order of truth.jsonl."""
    for line in (folder / "truth.jsonl").read_text("utf-8").splitlines():
        truth = json.loads(line)
        if only in truth["file"]:
            yield check(folder / truth["file"], truth)


def quantile(values: list[float], q: float) -> float:
    """The value below which a share q of them lies; 0 of none."""
    ranked = sorted(values)
    return ranked[min(int(q * len(ranked)), len(ranked) - 1)] if ranked else 0.0


def report(results: list[Outcome], worst: int = 10) -> None:
    """Print errors of partition, verdict and predictions."""
    parts = [r.partition_error for r in results]
    print(f"partition error: median {100 * median(parts):.3f} %, p95 {100 * quantile(parts, 0.95):.3f} %")
    for r in sorted(results, key=lambda r: -r.partition_error)[:worst]:
        if r.partition_error > 0.001 or not r.steps_agree:
            print(
                f"  {r.file} {r.kind}: {100 * r.partition_error:.3f} % in {r.worst_class}"
                + ("" if r.steps_agree else ", other steps or windows")
            )
    accepted = sum(r.accepted for r in results)
    print(f"verdict accepted: {accepted} of {len(results)}")
    for r in results:
        if not r.accepted:
            print(f"  {r.file} {r.kind}: {r.verdict}, right: {', '.join(r.accept)} {r.withheld}")
    for title, attribute in (("what-if, real gains", "errors"), ("what-if, no gain", "false_gains")):
        pooled = [(e, f"{r.file} {r.kind} {text}") for r in results for e, text in getattr(r, attribute)]
        values = [e for e, _ in pooled]
        if values:
            print(
                f"{title}: {len(values)}, median {100 * median(values):.3f} %, "
                f"p95 {100 * quantile(values, 0.95):.2f} %"
            )
        for error, text in sorted(pooled, reverse=True)[:worst]:
            if error > 0.01:
                print(f"  {100 * error:.1f} % {text}")
    replays = [r.replay_error for r in results if r.replay_error is not None]
    if replays:
        print(f"bounded replay: median {100 * median(replays):.3f} %, worst {100 * max(replays):.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("folder", nargs="?", type=Path)
    where.add_argument("--labelled", action="store_true")
    parser.add_argument("--only", default="", help="files whose name holds this text")
    args = parser.parse_args()
    report(list(outcomes(LABELLED if args.labelled else args.folder, args.only)))


if __name__ == "__main__":
    main()
