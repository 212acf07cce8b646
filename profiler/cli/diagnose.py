"""Say what holds a run back: verdict, stages, findings with remedy and prediction.

    stepscope diagnose RUN
    stepscope diagnose TRACE ...      of torch.profiler: files, a tar, or a folder with one for each rank

Of a trace every nanosecond of a step is accounted for, and the steps are replayed
without each cost. Without a trace the verdict comes from the stages of the steps,
from how far the device lags behind the host, and from live signals.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from profiler.cli import _streams, _traces
from profiler.cli._common import print_json, shown
from profiler.cli._diagnosis import print_diagnosis
from profiler.cli._price import add_price
from profiler.errors import TraceError, UsageError, one_line
from profiler.experiments.change import first_testable
from profiler.experiments.program import recorded_program
from profiler.rules import energy
from profiler.rules.trace.diagnosis import diagnose as trace_diagnosis
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="RUN_OR_TRACE", type=Path, nargs="+",
                        help="a run file, or traces: several files are the ranks of one job")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--tables", action="store_true",
                        help="with the tables of a trace: kernels, operators, your code, modules, "
                             "launches, idle gaps, copies, communication, memory at its peak, roofline, "
                             "critical path")
    parser.add_argument("--no-what-if", action="store_true",
                        help="no replay of the steps: no predictions and no critical path")
    add_price(parser)


def run(args: argparse.Namespace) -> int:
    first = args.paths[0]
    if any(map(_traces.is_run, args.paths)):
        if len(args.paths) > 1:
            raise UsageError("a run file is diagnosed alone", "Name one run, or traces only")
        told_by_traces = _of_traces(first, not args.no_what_if)
        with Run.open(first) as opened:
            diagnosis = diagnose(opened, trace=told_by_traces)
            program = recorded_program(opened.meta)
            used = energy.measured(opened, diagnosis)
        told = diagnosis.to_json()
        if used is not None:
            told["energy"] = energy.to_json(used, args.price)
            told["notes"] += energy.notes(used)
        next_one = first_testable(diagnosis.findings, program)
    else:
        traces = _traces.read(args.paths)
        found = trace_diagnosis(traces, ", ".join(map(str, args.paths)), what_if=not args.no_what_if)
        told, next_one, used = found.to_json(), None, None
    if args.json:
        print_json(told)
    else:
        print_diagnosis(shown(told), args.tables, [] if used is None else energy.lines(used, args.price))
        if next_one is not None and next_one.remedy is not None:
            print(f"Next: stepscope verify {one_line(shlex.quote(str(first)))}    "
                  f"tests {next_one.remedy.setting} by paired runs")
    return 0


def _of_traces(path: Path, what_if: bool) -> dict[str, Any] | None:
    """What the traces in a run say; None, with a line on stderr, when they cannot be read."""
    try:
        return _traces.analysed(path, what_if)
    except TraceError as error:
        _streams.say(f"The run's traces are left out: {error}")
        return None

