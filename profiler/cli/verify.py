"""Test a finding by running it: pairs of recordings without and with its remedy.

    stepscope verify RUN               the first finding whose remedy is a loader setting
    stepscope verify RUN input_bound   this one, by rule or by number

The run's own command is started again, A as it was and B with the remedy, in the
order A B, B A, ... on this machine. The ratio of their step times is the median over
pairs with its interval, beside the prediction. It ends as soon as the interval lies
wholly above 1.02 or below 0.98, with at least three pairs. The result is kept in the
run file. Ctrl-C ends it and keeps what was measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from profiler.cli._common import plain, print_json, shown
from profiler.cli._experiment import experiment, print_experiment
from profiler.errors import UsageError
from profiler.experiments.plan import make_plan
from profiler.experiments.statistics import FEWEST
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run

PAIRS, MOST_PAIRS, MOST_STEPS = 5, 1000, 1_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run file")
    parser.add_argument("finding", metavar="FINDING", nargs="?", help="a rule's name, or its number")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N",
                        help=f"at most so many pairs (default {PAIRS}, at least {FEWEST})")
    parser.add_argument("--steps", type=int, metavar="N", help="steps of each recording (default about 60)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the recordings in this folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    if not FEWEST <= args.pairs <= MOST_PAIRS:
        raise UsageError(f"--pairs {args.pairs} is out of range",
                         f"It is {FEWEST} to {MOST_PAIRS}: fewer carry no outcome")
    if args.steps is not None and not 10 <= args.steps <= MOST_STEPS:
        raise UsageError(f"--steps {args.steps} is out of range",
                         f"It is 10 to {MOST_STEPS}: warm-up does not count")
    with Run.open(args.run) as opened:
        plan = make_plan(opened, diagnose(opened), args.finding, args.pairs, args.steps)
    result = experiment(args.run, plan, args.keep)
    told = plain(result.to_json())
    if args.json:
        print_json(told)
    else:
        print_experiment(shown(told))
    return 130 if result.interrupted else 0
