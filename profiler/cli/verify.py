"""Test a remedy by running it: pairs of recordings without and with it.

    stepscope verify RUN                           the first finding whose remedy can be tested
    stepscope verify RUN input_bound               this one, by rule or by number
    stepscope verify RUN --try num_workers=4       any setting, whether or not a finding names it
    stepscope verify --try lr=0.1,0.2 -- python train.py --lr {lr}
    stepscope verify --scoreboard [RUN_OR_DIR ...] how all predictions have done so far

What --try can set: a workload's own settings; in any script the loader's num_workers,
prefetch_factor, pin_memory and persistent_workers, and matmul_precision,
cudnn_benchmark and threads; an environment variable, in capitals; a {name} in the
command. A is the program as it is, or with the first of two values, B with the (last) value.

The run's own command is started again in the order A B, B A, ... on this machine; a
command after -- is recorded once before. The ratio of their step times is the median
over pairs with its interval, beside the prediction. It ends as soon as the interval
lies wholly above 1.02 or below 0.98 and noise alone would hardly do that, with at
least three pairs. A run that crashes or never ends costs its own pair only. The result
is kept in the run file. Ctrl-C ends it and keeps what was measured.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from profiler.cli._common import Progress, duration, plain, print_json, shown
from profiler.cli._experiment import experiment, print_experiment
from profiler.cli._recording import output_path
from profiler.cli._scoreboard import print_scoreboard
from profiler.cli._signals import terminated_as_interrupt
from profiler.cli._streams import tell
from profiler.errors import TargetError, UsageError
from profiler.experiments.arm import read_arm
from profiler.experiments.change import Tried, changed, parse_tried
from profiler.experiments.plan import STEPS, make_plan
from profiler.experiments.program import Program, of_run
from profiler.experiments.statistics import FEWEST
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run

PAIRS, MOST_PAIRS, MOST_STEPS = 5, 1000, 1_000_000
FIRST_S = 300.0  # of the first recording of a command
TAKES_COMMAND = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = ("%(prog)s [options] RUN [FINDING]\n"
                    "       %(prog)s [options] --try SETTING=VALUE (RUN | -- COMMAND ...)\n"
                    "       %(prog)s --scoreboard [--json] [RUN_OR_DIR ...]")
    parser.add_argument("words", metavar="RUN [FINDING]", nargs="*",
                        help="a run file, and a rule's name or its number")
    parser.add_argument("--try", dest="tried", metavar="SETTING=VALUE",
                        help="test this setting instead of a finding; SETTING=A,B compares two values")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N",
                        help=f"at most so many pairs (default {PAIRS}, at least {FEWEST})")
    parser.add_argument("--steps", type=int, metavar="N", help="steps of each recording (default about 60)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the recordings in this folder")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="of a command after --: the run file in which the result is kept")
    parser.add_argument("--scoreboard", action="store_true",
                        help="the running score of the experiments in these runs and folders, by default "
                             "in the folder of runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    _check(args)
    if args.scoreboard:
        print_scoreboard([Path(word) for word in args.words], args.json)
        return 0
    path, program, tried = _begin(args)
    finding = args.words[1] if len(args.words) > 1 else None
    with Run.open(path) as opened:
        plan = make_plan(opened, diagnose(opened), finding, args.pairs, args.steps, tried, program)
    result = experiment(path, plan, args.keep)
    told = plain(result.to_json())
    if args.json:
        print_json(told)
    else:
        print_experiment(shown(told))
    return 130 if result.interrupted else 0


def _check(args: argparse.Namespace) -> None:
    if not FEWEST <= args.pairs <= MOST_PAIRS:
        raise UsageError(f"--pairs {args.pairs} is out of range",
                         f"It is {FEWEST} to {MOST_PAIRS}: fewer carry no outcome")
    if args.steps is not None and not 10 <= args.steps <= MOST_STEPS:
        raise UsageError(f"--steps {args.steps} is out of range",
                         f"It is 10 to {MOST_STEPS}: warm-up does not count")
    if args.scoreboard:
        if args.tried or args.command:
            raise UsageError("--scoreboard reads runs and starts nothing", "Name run files or folders only")
    elif args.command:
        if args.words or not args.tried:
            raise UsageError(f"a run is named and a command too: {args.words[0]}" if args.words
                             else "nothing says what to change in the command",
                             "Write stepscope verify --try SETTING=VALUE -- COMMAND")
    elif not args.words:
        raise UsageError("no run is named", "Write stepscope verify RUN, or --try SETTING=VALUE -- COMMAND")
    elif len(args.words) > (1 if args.tried else 2):
        raise UsageError(f"what does {args.words[-1]} mean here?",
                         "One run, and one finding of it or --try SETTING=VALUE")
    if args.output is not None and not args.command:
        raise UsageError("-o goes with a command after --", "The result is kept in the run that is named")


def _begin(args: argparse.Namespace) -> tuple[Path, Program | None, Tried | None]:
    """The run to compare with, what the user named to try, and the program where the run does not tell it."""
    if not args.command:
        path = Path(args.words[0])
        if args.tried is None:
            return path, None, None
        with Run.open(path) as opened:
            return path, None, parse_tried(args.tried, of_run(opened))
    program = Program(Path.cwd(), command=tuple(args.command))
    tried = parse_tried(args.tried, program)
    if open_ones := [name for name in program.placeholders if name != tried.setting]:
        raise UsageError(f"the placeholder {{{open_ones[0]}}} has no value",
                         f"One setting is tried; write {{{{{open_ones[0]}}}}} for the braces themselves")
    if tried.setting not in program.placeholders:
        program = program.filled({})  # {{name}} is {name}
    return _first(args, program, tried), program, tried


def _first(args: argparse.Namespace, program: Program, tried: Tried) -> Path:
    """Record the command as A has it: what the pairs take is known from this run, which keeps the result."""
    if tried.before is not None:
        started, intervene = changed(program, tried.setting, tried.before)
    else:
        started, intervene = program, None
    steps = args.steps or STEPS
    path = output_path(args.output, f"verify-{tried.setting}", force=False)
    tell(f"First {steps} steps of {shlex.join(started.command)}, for at most {duration(FIRST_S)}: "
         "how long the pairs take is known then")
    with terminated_as_interrupt(), Progress("Recording", FIRST_S) as bar:
        started.record(path, limit_s=FIRST_S, steps=steps, name=f"verify {tried.setting}",
                       intervene=intervene, tick=bar.update)
    try:
        read_arm(path, steps=steps)
    except TargetError as error:
        raise TargetError(f"the command fails as it is: {error.message}", f"Its run is {path}") from None
    return path
