"""What `verify` and `demo` share: an experiment with its progress, kept in the run, and in print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from profiler.cli._common import Progress, duration, print_table
from profiler.cli._signals import terminated_as_interrupt
from profiler.cli._streams import tell
from profiler.errors import RunError, UsageError, harmless
from profiler.experiments.plan import Plan
from profiler.experiments.program import Program
from profiler.experiments.result import Pair, Result
from profiler.experiments.statistics import FEWEST
from profiler.experiments.verify import Listener, verify
from profiler.metrics import stage_title
from profiler.record.private import private_folder, remove_folder
from profiler.rules.base import plural
from profiler.rules.words import parity, prediction, remedy, score
from profiler.run.results import append_result
from profiler.units import (
    format_ms,
    format_rate,
    format_ratio,
    ms_decimals,
)

WIDEST = 900  # letters of a line on the terminal


def experiment(path: Path, plan: Plan, keep: Path | None = None) -> Result:
    """Run `plan`, telling on stderr how far it is, and keep the result in the run file at `path`."""
    tell(budget(plan))
    tell_start(plan.start("a")[0])
    with terminated_as_interrupt(), recordings("verify", keep) as folder, Progress("Verifying", 1.0) as bar:

        def tick(done: float, total: float, text: str) -> None:
            bar.update(done / total if total > 0 else 0.0, text)

        def pair(measured: Pair, number: int) -> None:
            bar.clear()
            tell(pair_line(measured, number))

        result = verify(plan, folder, Listener(tick, pair))
    if result.pairs:
        keep_result(path, "experiment", result.to_json())
    return result


def tell_start(program: Program) -> None:
    """Say all that is started, first: a run may come from somebody else. No part of it is left out."""
    text = harmless(program.told())
    for at in range(0, len(text), WIDEST):
        tell(text[at:at + WIDEST])


def keep_result(path: Path, kind: str, told: Mapping[str, Any]) -> None:
    """Add a result to the run file. On read-only media that is told: the figures are still worth printing."""
    try:
        append_result(path, kind, told)
    except RunError as error:
        tell(f"stepscope: the result is not kept in the run: {error}")


def budget(plan: Plan) -> str:
    """How long it may take: "Testing num_workers 0 -> 4: about 30 to 50 s, 3 to 5 pairs of 6 s and 4 s"."""
    a, b = plan.expected_s("a"), plan.expected_s("b")
    least, most = plan.budget_s(FEWEST), plan.budget_s(plan.pairs)
    longest = f" to {duration(most)}" if plan.pairs > FEWEST else ""
    pairs = f"{FEWEST} to {plan.pairs}" if plan.pairs > FEWEST else f"{FEWEST}"
    return (f"Testing {remedy(plan.remedy.to_json())}: about {duration(least)}{longest}, {pairs} pairs "
            f"of {duration(a)} and {duration(b)}, {plan.steps} steps each")


def pair_line(pair: Pair, number: int) -> str:
    left = [f"{side.upper()}: {', '.join(why)}" for side in "ab" if (why := pair.marks(side))]
    out = f"left out: {'; '.join(left)}"
    if pair.both is None or pair.ratio is None:
        return f"pair {number}: {out}"
    before, after = (arm.latency_ms if pair.unit == "request" else arm.step_ms for arm in pair.both)
    usual = min(before or 0.0, after or 0.0) * 1e6
    of = "for the median request" if pair.unit == "request" else "per step"
    text = (f"pair {number}: {format_ms((before or 0.0) * 1e6, ms_decimals(usual))} \u2192 "
            f"{format_ms((after or 0.0) * 1e6, ms_decimals(usual))} {of}, {format_ratio(pair.ratio)}"
            f"{' per sample' if pair.unit == 'sample' else ''}")
    return f"{text}, {out}" if left else text


def print_experiment(told: Mapping[str, Any]) -> None:
    """Prediction and measurement side by side, from the JSON form of a result."""
    ratio, predicted = told["ratio"], told["prediction"]
    print(f"{remedy(told['remedy'])}: {told['outcome']}")
    if predicted:
        print(f"  predicted  {prediction(predicted)}")
    if ratio:
        measured = format_ratio(ratio["median"], (ratio["low"], ratio["high"]))
        of = "" if told["unit"] == "step" else f" for a {told['unit']}"
        print(f"  measured   {measured}{of}, {plural(ratio['pairs'], 'pair')}")
    elif told["reason"]:
        print(f"  measured   nothing: {told['reason']}")
    if predicted:
        meaning = score(told)
        print(f"  score      {told['score']}{': ' + meaning if meaning else ''}")
    if told["stages_ms"]:
        print()
        _print_stages(told)
    print()
    if ratio:
        print(parity(told["loss"]) + ".")
    for item in told["left_out"]:
        print(f"Left out: pair {item['pair']}, {item['side'].upper()}: {', '.join(item['why'])}.")
    for note in told["notes"]:
        print(f"Note: {note}.")


def _print_stages(told: Mapping[str, Any]) -> None:
    step, stages = told["step_ms"], told["stages_ms"]
    decimals = ms_decimals(min(step["a"], step["b"]) * 1e6)

    def ms(value: float) -> str:
        return format_ms(value * 1e6, decimals, unit=False)

    change = told["change_ms"]
    rows = [[stage_title(name), ms(before), ms(stages["b"][name]), ms(change[name])]
            for name, before in stages["a"].items() if max(before, stages["b"][name]) * 10**decimals >= 0.5]
    rows.append(["step", ms(step["a"]), ms(step["b"]), ms(change["step"])])
    head = f"ms per step, mean of {told['ratio']['pairs']} pairs"
    print_table(rows, [head, "before", "after", "change"], [1, 2, 3], indent="  ")
    if (latency := told["latency_ms"]) and latency["a"] and latency["b"]:
        print(f"  {ms(latency['a'])} \u2192 {format_ms(latency['b'] * 1e6, decimals)} for the median request")
    rate = told["throughput"]
    if rate and rate["a"] and rate["b"]:
        print(f"  {format_rate(rate['a'], unit=False)} \u2192 {format_rate(rate['b'], rate['unit'])}")


@contextmanager
def recordings(kind: str, keep: Path | None) -> Iterator[Path]:
    """Where an experiment's recordings go: `keep`, else a temporary folder that is gone afterwards."""
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the folder {keep} cannot be made: {error.strerror}",
                             "Name another one with --keep") from error
        yield keep.absolute()
        return
    folder = private_folder(f"stepscope-{kind}-")
    try:
        yield folder
    finally:
        remove_folder(folder)
