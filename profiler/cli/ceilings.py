"""Measure the ceiling of each stage alone, and which one the run leans on.

    stepscope ceilings run.stepscope             what the run recorded, started again
    stepscope ceilings --workload input_starved
    stepscope ceilings -- python train.py        a plain script, unedited

The program is recorded as it is and with one part left alone: the loader with nothing
done to its batches; all but the input (the first batch again and again); on a GPU the
same with the batch kept there; forward without backward and optimizer. Rounds go forth
and back through these. Each end is the program's own: nothing of it is edited. Of a run
file the result is kept in it, and later predictions for its loader use it. Ctrl-C ends
it and keeps what was measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.cli._common import Progress, duration, plain, print_json, print_table, shown
from profiler.cli._experiment import keep_result, recordings, tell_start
from profiler.cli._signals import terminated_as_interrupt
from profiler.cli._streams import tell
from profiler.errors import RunError, UsageError
from profiler.experiments.ceilings.measure import Listener, measure
from profiler.experiments.ceilings.plan import TITLES, Plan, plan_of_run
from profiler.experiments.ceilings.result import Taken
from profiler.experiments.plan import STEPS
from profiler.experiments.program import Program
from profiler.experiments.sweep.subject import check_found, of_workload
from profiler.paths import working_dir
from profiler.rules.base import plural
from profiler.run.reader import Run
from profiler.units import format_ms, format_rate, ms_decimals

TAKES_COMMAND = True
REPEATS, MOST_REPEATS, MOST_STEPS = 3, 100, 1_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] (RUN | --workload NAME [--set KEY=VALUE ...] | -- COMMAND ...)"
    add = parser.add_argument
    add("run", metavar="RUN", type=Path, nargs="?", help="a run file: its program is started again")
    add("--workload", metavar="NAME", help="a workload of ours: see stepscope workloads")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="a setting of the workload; may be given many times")
    add("--data", type=Path, metavar="DIR", help="the workload's data, instead of what it makes itself")
    add("--steps", type=int, metavar="N", help=f"steps of each recording (default about {STEPS})")
    add("--repeats", type=int, default=REPEATS, metavar="N",
        help=f"recordings of each stage (default {REPEATS})")
    add("--keep", type=Path, metavar="DIR", help="keep the recordings in this folder")
    add("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    plan = _plan(args)
    tell(budget(plan))
    if args.run is not None:
        tell_start(plan.program)
    with terminated_as_interrupt(), recordings("ceilings", args.keep) as folder, \
            Progress("Ceilings", 1.0) as bar:
        result = measure(plan, folder, _listener(bar))
    told = plain(result.to_json())
    if args.run is not None and result.levels():
        keep_result(args.run, "ceilings", told)
    if args.json:
        print_json(told)
    else:
        print_ceilings(shown(told))
    return 130 if result.interrupted else 0


def _plan(args: argparse.Namespace) -> Plan:
    ways = [name for name, given in (("a run", args.run), ("a workload", args.workload),
                                     ("a command", args.command)) if given]
    if len(ways) != 1:
        raise UsageError(f"both {' and '.join(ways)} are given" if ways else "nothing to measure",
                         "Name one: a run file, --workload NAME, or -- COMMAND")
    if not args.workload and (args.settings or args.data):
        raise UsageError(f"{'--set' if args.settings else '--data'} goes with --workload",
                         "Settings of your own command go after --")
    for option, value, least, most in (("--repeats", args.repeats, 1, MOST_REPEATS),
                                       ("--steps", args.steps, 10, MOST_STEPS)):
        if value is not None and not least <= value <= most:
            raise UsageError(f"{option} {value} is out of range", f"It is {least} to {most}")
    if args.run is not None:
        with Run.open(args.run) as opened:
            return plan_of_run(opened, args.repeats, args.steps)
    cwd = working_dir()
    if cwd is None:
        raise RunError("the working directory is gone", "Change to one that is there")
    if args.workload:
        program = of_workload(args.workload, args.settings, [], args.data, cwd).program
    else:
        check_found(args.command[0])
        program = Program(cwd, command=tuple(args.command))  # as it is: nothing in it is a placeholder
    return Plan(program, args.steps or STEPS, args.repeats)


def budget(plan: Plan) -> str:
    """How long it may take: "At most 15 recordings of 60 steps, about 2 min 0 s: ..."."""
    runs, usual = plan.recordings(), plan.expected_s()
    time_s = f"about {duration(runs * usual)}" if usual else "the first tells how long they take"
    return (f"{'' if plan.kind else 'At most '}{runs} recordings of {plan.steps} steps, {time_s}: "
            f"the program as it is and its stages alone, {plural(plan.repeats, 'time')} each")


def _listener(bar: Progress) -> Listener:
    def tick(done: float, total: int, left: float | None, text: str) -> None:
        bar.update(done / total if total else 0.0, text + (f", about {duration(left)} left" if left else ""))

    def taken(what: Taken) -> None:
        bar.clear()
        tell(taken_line(what))

    return Listener(tick, taken)


def taken_line(taken: Taken) -> str:
    """What one recording gave: "round 1, loader alone: 36.2 ms per step, 442 samples/s"."""
    text = f"round {taken.round}, {TITLES[taken.stage]}: "
    if taken.arm is None:
        return text + taken.failure
    text += f"{format_ms(taken.arm.step_ms * 1e6, ms_decimals(taken.arm.step_ms * 1e6))} per step"
    if rate := format_rate(taken.arm.throughput, f"{taken.arm.work}/s"):
        text += f", {rate}"
    return text + (f", left out: {', '.join(taken.why)}" if taken.why else "")


def print_ceilings(told: Mapping[str, Any]) -> None:
    """The stages beside each other, and what the run leans on, from the JSON form of a result."""
    print(told["leaning"]["text"])
    print()
    if told["stages"]:
        least = min(stage["step_ms"]["median"] for stage in told["stages"])
        rows = [_row(stage, ms_decimals(least * 1e6)) for stage in told["stages"]]
        head = f"median of {told['repeats']}, and range" if told["repeats"] > 1 else "one recording each"
        print_table(rows, [head, "ms per step", "", f"{told['unit']}/s", ""], [1, 3], indent="  ")
        print()
    for item in told["absent"]:
        print(f"Not measured: {item['title']}: {item['why']}.")
    for item in told["left_out"]:
        print(f"Left out: round {item['round']}, {item['title']}: {', '.join(item['why'])}.")
    for note in told["notes"]:
        print(f"Note: {note}.")


def _row(stage: Mapping[str, Any], decimals: int) -> list[str]:
    step, rate = stage["step_ms"], stage["throughput"]

    def ms(value: float) -> str:
        return format_ms(value * 1e6, decimals, unit=False)

    def range_of(level: Mapping[str, float] | None, number: Any) -> str:
        return f"{number(level['low'])} to {number(level['high'])}" if level and stage["runs"] > 1 else ""

    def per_second(value: float) -> str:
        return format_rate(value, unit=False)

    title = stage["title"]
    if stage["name"].startswith("loader") and "num_workers" in stage["loader"]:
        title += f" ({plural(stage['loader']['num_workers'], 'worker')})"
    return [title, ms(step["median"]), range_of(step, ms),
            per_second(rate["median"]) if rate else "", range_of(rate, per_second)]
