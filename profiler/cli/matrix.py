"""What the diagnosis says of runs whose answer is known: a confusion matrix.

    stepscope matrix                              every fault that acts on a CPU and all controls, 5 times
    stepscope matrix --only few_workers           this fault and its control
    stepscope matrix --repeats 0 --traces DIR     labelled traces alone
    stepscope matrix --show FILE                  the tables of a result that was kept by --save

Each run is recorded and diagnosed as a user would. Printed are the share of runs that
bring the verdict and the finding which their fault states (a control: that blame
nothing), and precision and recall by verdict and by rule with 95 % bounds. Every
finished run is kept in a folder at once: Ctrl-C keeps what was done, and --resume
goes on. A run that crashes or hangs counts as such, and the others go on.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.catalog import FaultInfo, fault, faults, workloads
from profiler.cli._common import Progress, duration, fitted, plain, print_json, shown
from profiler.cli._folders import experiment_folder
from profiler.cli._signals import terminated_as_interrupt
from profiler.cli._streams import tell
from profiler.errors import UsageError
from profiler.experiments import lines
from profiler.experiments.matrix import store
from profiler.experiments.matrix.cases import cases, labelled
from profiler.experiments.matrix.kept import read_kept
from profiler.experiments.matrix.run import Job, Listener, Result, expected_s, jobs
from profiler.experiments.matrix.run import run as play_all
from profiler.experiments.matrix.words import line_text, markdown
from profiler.units import format_number

REPEATS, MOST = 5, 100
BUSY = 0.3
TEXT = 21  # letters beside the bar: a longer line would not be overwritten


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="FAULT", nargs="+", default=[],
                        help="these faults and their controls")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N",
                        help=f"runs of each (default {REPEATS}; 0 with --traces: no runs)")
    parser.add_argument("--traces", type=Path, metavar="DIR",
                        help="labelled traces as well, counted apart: a folder with truth.jsonl, whose lines "
                             'are like {"file": "a.json.gz", "accept": ["input_bound"]}')
    parser.add_argument("-o", "--output", type=Path, metavar="DIR",
                        help="folder of the finished runs (default: a new one beside the other runs)")
    parser.add_argument("--resume", action="store_true",
                        help="go on with the folder -o, else with the newest")
    parser.add_argument("--keep", action="store_true", help="keep the run files there too")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the result as JSON in this file")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print a kept result, and run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    if args.show:
        _print(read_kept(args.show), args.json)
        return 0
    if not 0 <= args.repeats <= MOST or not (args.repeats or args.traces):
        raise UsageError(f"--repeats {args.repeats} is out of range", f"It is 1 to {MOST}; 0 with --traces")
    if args.save and (args.save.is_dir() or not args.save.absolute().parent.is_dir()):
        why = "it is a folder" if args.save.is_dir() else "there is no such folder"
        raise UsageError(f"{args.save}: {why}", "Name a file in one that is there")
    chosen: list[FaultInfo] = [fault(name) for name in dict.fromkeys(args.only)] or faults()
    folder = experiment_folder("matrix", store.LINES, args.output, args.resume)
    found, left_out = cases(chosen, folder, [] if args.only else workloads()) if args.repeats else ([], {})
    traces = labelled(args.traces) if args.traces else []
    if found and importlib.util.find_spec("torch") is None:
        raise UsageError("the runs of the matrix need torch",
                         'Install it: pip install "stepscope[workloads]"; --repeats 0 --traces needs none')
    if not found and not traces:
        raise UsageError(f"nothing to run: {next(iter(left_out))} {next(iter(left_out.values()))}")
    store.begin(folder, args.resume)
    with lines.alone(folder):
        result = _run(jobs(found, args.repeats, traces), folder, args, left_out)
    told = plain(result.to_json())
    if args.save:  # before it is printed to somebody who may have left
        _save(told, args.save)
    _print(told, args.json)
    return 130 if result.interrupted else 0


def _run(work: list[Job], folder: Path, args: argparse.Namespace, left_out: Mapping[str, str]) -> Result:
    known = store.finished(folder)
    missing = [job for job in work if job.key not in known]
    done = f", {len(work) - len(missing)} are done already" if len(missing) < len(work) else ""
    tell(f"{len(missing)} runs, about {duration(expected_s(missing, list(known.values())))}{done}; "
          f"kept in {folder}")
    if (load := _load()) > BUSY:
        tell(f"The machine is not quiet: {format_number(load, 1)} programs a core wanted to run in the last "
              "minute, and what others do is in the figures")
    with terminated_as_interrupt(), Progress("Matrix", 1.0) as bar:

        def tick(seconds: float, total: float, text: str) -> None:
            bar.update(seconds / total if total > 0 else 0.0,
                       f"{duration(total - seconds)} left, {fitted(text, TEXT)}")

        def finished(line: Mapping[str, Any]) -> None:
            bar.clear()
            tell(line_text(line))

        result = play_all(work, folder, args.repeats, left_out=left_out, keep=args.keep,
                          listener=Listener(tick, finished))
    if result.interrupted:
        tell("Interrupted. The same command goes on with --resume"
              + ("" if args.output is None else f" -o {args.output}"))
    return result


def _load() -> float:
    """Programs that wanted to run in the last minute, a core; 0 where the system does not tell."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


def _save(told: Mapping[str, Any], path: Path) -> None:
    """A result of all runs only: what was interrupted says less than what it would replace."""
    if told["interrupted"]:
        tell(f"{path} is not written: not all runs were made")
        return
    try:
        lines.replace(path, told)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _print(told: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
    else:
        print(markdown(shown(told)))
