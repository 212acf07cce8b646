"""Say what holds a run back: verdict, stages, findings with remedy and prediction.

    stepscope diagnose RUN
    stepscope diagnose TRACE ...      of torch.profiler: files, a tar, or a folder with one for each rank

Of a trace every nanosecond of a step is accounted for, and the steps are replayed
without each cost. Without a trace the verdict comes from the stages of the steps,
from how far the device lags behind the host, and from live signals.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.cli import _traces
from profiler.cli._common import print_json, print_table, shown
from profiler.errors import UsageError
from profiler.metrics import stage_title
from profiler.rules.base import Finding
from profiler.rules.trace.diagnosis import diagnose as trace_diagnosis
from profiler.rules.verdict import diagnose
from profiler.rules.words import evidence_line, prediction, remedy, verdict_title
from profiler.run.reader import Run
from profiler.units import (
    format_count,
    format_ms,
    format_rate,
    format_share,
    ms_decimals,
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="RUN_OR_TRACE", type=Path, nargs="+",
                        help="a run file, or traces: several files are the ranks of one job")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--no-what-if", action="store_true", help="no replay of the steps, no predictions")


def run(args: argparse.Namespace) -> int:
    first = args.paths[0]
    if any(map(_traces.is_run, args.paths)):
        if len(args.paths) > 1:
            raise UsageError("a run file is diagnosed alone", "Name one run, or traces only")
        with Run.open(first) as opened:
            diagnosis = diagnose(opened)
        told, findings = diagnosis.to_json(), diagnosis.findings
    else:
        traces = _traces.read(args.paths)
        found = trace_diagnosis(traces, ", ".join(map(str, args.paths)), what_if=not args.no_what_if)
        told, findings = found.to_json(), ()
    if args.json:
        print_json(told)
    else:
        print_diagnosis(shown(told))
        _next_step(first, findings)
    return 0


def print_diagnosis(told: Mapping[str, Any]) -> None:
    """The human form, from the JSON form of a diagnosis."""
    print(f"{verdict_title(told['verdict'])}: {told['headline']}.")
    if told["also"]:
        print(f"Also {', '.join(verdict_title(word).lower() for word in told['also'])}.")
    if told["reason"] != told["headline"]:
        print(f"Confidence {told['confidence']}: {told['reason']}.")
    print()
    if told["step_ms"]:
        _print_stages(told)
        print()
    for rank in told["ranks"] or ():
        usual = rank["step_ms"]["usual"] * 1e6 if rank["step_ms"] else None
        print(f"Rank {rank['rank'] if rank['rank'] is not None else rank['pid']}: "
              f"{verdict_title(rank['verdict']).lower()}, {format_ms(usual)} per step")
    if told["ranks"]:
        print()
    for number, finding in enumerate(told["findings"], 1):
        _print_finding(number, finding)
    for note in told["notes"]:
        print(f"Note: {note}.")


def _print_stages(told: Mapping[str, Any]) -> None:
    step, stages = told["step_ms"], told["stages_ms"]
    usual = step["usual"] * 1e6
    decimals = ms_decimals(usual)

    def ms(value: float | None) -> str:
        return format_ms(None if value is None else value * 1e6, decimals, unit=False)

    rows = [[stage_title(name), ms(value), format_share(value * 1e6 / usual),
             ms(told["device_ms"].get(name)), ms(told["lag_ms"].get(name))] for name, value in stages.items()]
    on_device = sum(told["device_ms"].values()) or None
    rows.append(["step", ms(step["usual"]), format_share(1.0), ms(on_device), ""])
    head, right = ["stage", "ms/step", "share", "device ms", "lag ms"], [1, 2, 3, 4]
    if not told["device_ms"]:
        rows, head, right = [row[:3] for row in rows], head[:3], right[:2]
    print_table(rows, head, right, indent="  ")
    print()
    facts = [f"median {ms(step['median'])} ms"]
    if step["p5"] is not None:
        facts.append(f"5 to 95 %: {ms(step['p5'])} to {ms(step['p95'])} ms")
    else:
        facts.append(f"range {ms(step['range'][0])} to {ms(step['range'][1])} ms")
    counts = told["steps"]
    facts.append(f"{format_count(counts['count'])} steady steps of {format_count(counts['total'])}")
    print("  " + ", ".join(facts))
    if told["throughput"]:
        text = format_rate(told["throughput"]["value"], told["throughput"]["unit"])
        whole = told["whole_run"]["throughput"]
        print(f"  {text}" + (f", {format_rate(whole, unit=False)} over the whole run" if whole else ""))
    print(f"  on {told['device']['name']}")


def _print_finding(number: int, finding: Mapping[str, Any]) -> None:
    cost = f", {format_ms(finding['cost_ms'] * 1e6)} per step" if finding["cost_ms"] else ""
    print(f"{number}. {finding['title']}{cost}")
    if finding["site"]:
        print(f"   at {finding['site']}")
    for kind, mark in (("evidence", "+"), ("counter_evidence", "-")):
        for item in finding[kind]:
            print(f"   {mark} {evidence_line(item)}")
    if finding["remedy"]:
        print(f"   Try {remedy(finding['remedy'])}")
    if finding["advice"]:
        print(f"   {finding['advice']}")
    if predicted := finding["prediction"]:
        print(f"   {'' if predicted['at_most'] else 'predicts '}{prediction(predicted)}")
    print()


def _next_step(path: Path, findings: Sequence[Finding]) -> None:
    finding: Finding | None = next((f for f in findings if f.remedy), None)
    if finding is not None:
        print(f"Next: stepscope verify {path}    tests the first remedy by paired runs")
