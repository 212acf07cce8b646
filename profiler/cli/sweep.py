"""Try many settings, and show which is best, with noise bands.

    stepscope sweep --workload input_starved --grid workers=0,1,2,4
    stepscope sweep --grid lr=0.1,0.01 --grid batch=32,64 -- python train.py --lr {lr} --batch {batch}
    stepscope sweep --grid num_workers=0,2,4 -- python train.py       a plain script's loader, unedited

Every point is run once, in an order by chance, then all again: drift of the machine
hits all alike. A point clearly below the leader is given up early; one that crashes,
runs out of memory or hangs is told and loses nothing else. Finished runs are kept in
a folder at once: Ctrl-C keeps what was measured, and --resume goes on. In a command
{key} is a placeholder, {{key}} the text {key}. --auto searches by itself: it records
and diagnoses the program, then changes one setting at a time while that helps.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.cli._common import print_json, shown
from profiler.cli._folders import experiment_folder
from profiler.cli._sweep import print_search, print_sweep
from profiler.cli._sweep_run import Work, measure_all, search_itself
from profiler.errors import RunError, UsageError
from profiler.experiments.plan import STEPS
from profiler.experiments.sweep import journal, points
from profiler.experiments.sweep.subject import Subject, choose, of_command, of_workload
from profiler.experiments.sweep.tpe import explore, optuna
from profiler.paths import working_dir

TAKES_COMMAND = True
REPEATS, MOST_REPEATS, MOST_STEPS = 3, 100, 1_000_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?$")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s (--grid KEY=A,B ... | --list FILE | --random N | --auto) [options] " \
                   "(--workload NAME [--set KEY=VALUE ...] | -- COMMAND ...)"
    add = parser.add_argument
    add("--workload", metavar="NAME", help="a workload of ours: see stepscope workloads")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="a setting of the workload that stays; may be given many times")
    add("--data", type=Path, metavar="DIR", help="the workload's data, instead of what it makes itself")
    add("--grid", action="append", default=[], metavar="KEY=A,B,C", help="values to try; of several keys all "
        "combinations. KEY is a workload's setting, a placeholder of the command, or of a script's loader "
        "num_workers, prefetch_factor, pin_memory or persistent_workers")
    add("--list", type=Path, metavar="FILE", help='the points: a line of JSON each, {"workers": 2}')
    add("--random", type=int, metavar="N", help="N points drawn from --grid and --range")
    add("--range", action="append", default=[], metavar="KEY=LOW:HIGH[:log]", help="numbers to draw from")
    add("--sampler", choices=("random", "tpe"), default="random",
        help="how --random draws: tpe learns from what was measured, and needs optuna")
    add("--auto", action="store_true", help="search loader and batch settings, beginning with a diagnosis; "
        "--grid names the values of a placeholder, the first is the start")
    add("--repeats", type=int, default=REPEATS, metavar="N", help=f"runs of each point (default {REPEATS})")
    add("--steps", type=int, metavar="N", help=f"steps of each run (default {STEPS})")
    add("--seed", type=int, default=0, metavar="N", help="of the order of runs and of random draws")
    add("--max-memory", metavar="BYTES", help="points that need more are never the best: 16G, 8GiB")
    add("--limit", type=float, metavar="S", help="end a run that takes longer (default: ten usual times)")
    add("-o", "--output", type=Path, metavar="DIR",
        help="folder of the finished runs (default: a new one beside the other runs)")
    add("--resume", action="store_true", help="go on with the folder -o, else with the newest")
    add("--keep", action="store_true", help="keep the run files there too")
    add("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    _check(args)
    axes = points.axes_of(map(points.parse_axis, args.grid))
    ranges = points.axes_of(map(points.parse_range, args.range))
    if args.sampler == "tpe":
        optuna()  # that it is missing is told before anything else
    raws = _raws(args, axes, ranges)
    subject = _subject(args, list(raws[0]) if raws else [*axes, *ranges])
    chosen, skipped = choose(subject, raws) if raws else ([], [])
    folder = experiment_folder("sweep", journal.NAME, args.output, args.resume)
    work = Work(
        subject, folder, steps=args.steps or _own_steps(subject) or STEPS, repeats=args.repeats,
        seed=args.seed, most_memory=parse_bytes(args.max_memory) if args.max_memory else None,
        limit_s=args.limit, resume=args.resume, keep=args.keep)
    if args.auto:
        told = search_itself(work, axes)
    elif args.sampler == "tpe":
        told = measure_all(work, [], [], lambda bench, found, left_out: explore(
            subject, axes, ranges, args.random, bench, found, left_out))
    else:
        told = measure_all(work, chosen, skipped)
    if args.json:
        print_json(told)
    else:
        (print_search if args.auto else print_sweep)(shown(told))
    if told["interrupted"]:
        return 130
    return 0 if told["best"] or args.auto else 2


def _check(args: argparse.Namespace) -> None:
    if bool(args.workload) == bool(args.command):
        raise UsageError("both a workload and a command are given" if args.workload else "nothing to run",
                         "Name one: --workload NAME, or -- COMMAND")
    if args.command and (args.settings or args.data):
        raise UsageError(f"{'--set' if args.settings else '--data'} goes with --workload",
                         "Settings of your own command go after --")
    ways = [name for name, given in (("--list", args.list), ("--random", args.random is not None),
                                     ("--auto", args.auto)) if given]
    if len(ways) > 1 or (args.list and args.grid):
        raise UsageError(f"{ways[0]} and {ways[1] if len(ways) > 1 else '--grid'} exclude each other",
                         "Choose one")
    if not ways and not args.grid:
        raise UsageError("no values to try", "Add --grid KEY=A,B,C, --list FILE, --random N or --auto")
    if (args.range or args.sampler == "tpe") and args.random is None:
        raise UsageError(f"{'--range' if args.range else '--sampler'} goes with --random N", "Add it")
    for option, value, least, most in (("--repeats", args.repeats, 1, MOST_REPEATS),
                                       ("--random", args.random, 1, points.MOST),
                                       ("--steps", args.steps, 10, MOST_STEPS)):
        if value is not None and not least <= value <= most:
            raise UsageError(f"{option} {value} is out of range", f"It is {least} to {most}")
    if args.limit is not None and not 1 <= args.limit < 1e9:
        raise UsageError(f"--limit {args.limit:g} is not a time", "Give seconds, at least 1")


def parse_bytes(told: str) -> float:
    """Bytes of "16G", "8GiB" or "1000000". UsageError otherwise."""
    match = _SIZE.match(told.strip())
    if not match or not float(match[1]):
        raise UsageError(f"--max-memory {told} is no size", "Write bytes, or 16G, or 8GiB")
    return float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")


def _raws(args: argparse.Namespace, axes: Mapping[str, Any],
          ranges: Mapping[str, Any]) -> list[dict[str, str]]:
    if args.list:
        try:
            return points.listed(args.list.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise UsageError(f"{args.list} cannot be read: {why}") from error
    if args.auto or args.sampler == "tpe":
        return []
    if args.random is not None:
        return points.drawn(axes, ranges, args.random, args.seed)
    return points.grid(axes)


def _subject(args: argparse.Namespace, keys: list[str]) -> Subject:
    cwd = working_dir()
    if cwd is None:
        raise RunError("the working directory is gone", "Change to one that is there")
    if args.workload:
        return of_workload(args.workload, args.settings, keys, args.data, cwd)
    return of_command(args.command, keys, cwd)


def _own_steps(subject: Subject) -> int | None:
    """Steps that --set steps=N gives."""
    given = any(pair.partition("=")[0].strip() == "steps" for pair in subject.base)
    return int(subject.program.settings["steps"]) if given else None
