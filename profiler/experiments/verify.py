"""Test a remedy: pairs of recordings without and with it, until their ratio is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.errors import TargetError, UsageError
from profiler.experiments.arm import LATE, Arm, read_arm, unapplied
from profiler.experiments.change import LOADER
from profiler.experiments.plan import Plan
from profiler.experiments.result import Pair, Result, ratios
from profiler.experiments.statistics import FEWEST, decided

EXTRA_PAIRS = 2  # in the place of pairs that were left out
IN_A_ROW = 2  # pairs that fail until it is no use
LEAST_S, TIMES = 120.0, 10  # a recording's time, at least, and in expected ones: the remedy may compile


@dataclass
class Listener:
    """Who is told while it runs: `tick(done in s, of so many, text)`, `pair(pair, its number)`."""

    tick: Callable[[float, float, str], None] = lambda done, total, text: None
    pair: Callable[[Pair, int], None] = lambda pair, number: None


def verify(plan: Plan, folder: Path, listener: Listener) -> Result:
    """Run pairs, A B, B A, ..., into run files in `folder`.

    Ends when the ratio is decided with at least three pairs, when all pairs are done, when
    two pairs in a row fail, or by KeyboardInterrupt: then what was measured is the result. A
    recording that crashes, runs out of memory or never ends costs its own pair only. TargetError
    when the program fails as it was in the first pair, UsageError when it does not take the remedy.
    """
    begin = time.monotonic()
    pairs: list[Pair] = []
    interrupted = False
    try:
        while _goes_on(plan, pairs):
            pairs.append(_pair(plan, folder, len(pairs), listener))
            listener.pair(pairs[-1], len(pairs))
    except KeyboardInterrupt:
        interrupted = True
    failure = f"{IN_A_ROW} pairs in a row failed" if _no_use(pairs) else ""
    return Result(plan, tuple(pairs), time.monotonic() - begin, interrupted, failure)


def _goes_on(plan: Plan, pairs: list[Pair]) -> bool:
    found = ratios(pairs)
    if len(found) >= plan.pairs or len(pairs) >= plan.pairs + EXTRA_PAIRS or _no_use(pairs):
        return False
    return len(found) < FEWEST or not decided(found)


def _no_use(pairs: list[Pair]) -> bool:
    last = pairs[-IN_A_ROW:]
    return len(last) == IN_A_ROW and all(
        pair.failed or any(LATE in pair.marks(side) for side in "ab") for pair in last)


def _pair(plan: Plan, folder: Path, number: int, listener: Listener) -> Pair:
    """The second recording of a pair whose first one failed is not made."""
    order = "ba" if number % 2 else "ab"
    arms: dict[str, Arm] = {}
    for k, arm in enumerate(order):
        text = f"pair {number + 1} of at most {plan.pairs}, {'without' if arm == 'a' else 'with'} the remedy"
        done = plan.budget_s(number) + (plan.expected_s(order[0]) if k else 0.0)

        def tick(seconds: float, done: float = done, text: str = text, arm: str = arm) -> None:
            listener.tick(done + min(seconds, plan.expected_s(arm)), plan.budget_s(plan.pairs), text)

        try:
            arms[arm] = _record(plan, arm, folder / f"{number + 1}{arm}.stepscope", tick)
        except TargetError as error:
            if not number and arm == "a":
                raise TargetError(f"the program fails as it was recorded: {error.message}") from error
            return Pair(order, arms.get("a"), arms.get("b"), error.message, arm)
        except UsageError as error:
            if not number:
                raise
            return Pair(order, arms.get("a"), arms.get("b"), error.message, arm)
    return Pair(order, arms["a"], arms["b"])


def _record(plan: Plan, arm: str, output: Path, tick: Callable[[float], None]) -> Arm:
    program, intervene = plan.start(arm)
    program.record(
        output, limit_s=max(LEAST_S, TIMES * plan.expected_s(arm)), steps=plan.steps,
        name=f"verify {arm.upper()}", intervene=intervene, tick=tick)
    measured = read_arm(output, plan.of_epochs, plan.steps, plan.stalls)
    check_applied(output, intervene or {}, measured.loader)
    return measured


def check_applied(output: Path, intervene: Mapping[str, Any], loader: Mapping[str, Any]) -> None:
    """UsageError unless a recording and the loader in it had what the probe was to change."""
    for setting, wanted in intervene.items():
        if setting not in LOADER:
            if why := unapplied(output, {setting: wanted}):
                raise UsageError(why)
        elif not loader:
            raise UsageError(f"{setting} cannot be set: the program makes no torch DataLoader that its steps "
                             "take batches from")
        elif loader.get(setting) != wanted:
            raise UsageError(f"the loader did not take {setting}={wanted}, it had {loader.get(setting)}",
                             "The program sets it itself after making its loader: change it there")
