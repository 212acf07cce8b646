"""Energy in a diagnosis: as plain values, in words, and what it costs at a price that the user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from profiler.analysis.energy_use import Energy, energy
from profiler.metrics import stage_title
from profiler.rules.base import plural
from profiler.rules.verdict import Diagnosis
from profiler.rules.words import listed
from profiler.units import (
    NBSP,
    format_energy,
    format_joules,
    format_number,
    format_power,
    format_ratio,
    format_share,
    format_time,
)

if TYPE_CHECKING:
    from profiler.run.reader import Run

KWH = 3.6e6  # J
RESAMPLES = 2000
FEWEST = 3  # groups of steps of each run that carry an interval


@dataclass(frozen=True)
class Price:
    """Of one kWh. `currency` is the user's word for it, and may be empty."""

    per_kwh: float
    currency: str = ""

    def of(self, joule: float | None) -> float | None:
        return None if joule is None else joule / KWH * self.per_kwh

    def text(self, amount: float | None) -> str:
        """With three digits: 0.0123 EUR."""
        if amount is None:
            return ""
        decimals = max(2, 2 - int(np.floor(np.log10(amount)))) if amount > 0 else 2
        return self._in_currency(format_number(amount, decimals))

    def __str__(self) -> str:
        return f"{self._in_currency(f'{self.per_kwh:g}')} a kWh"

    def _in_currency(self, number: str) -> str:
        return f"{number}{NBSP}{self.currency}" if self.currency else number


def measured(run: Run, diagnosis: Diagnosis) -> Energy | None:
    """Of the loop that the verdict is about; of ranks of one job all of them together. None of a trace."""
    if diagnosis.imported:
        return None
    facts = diagnosis.facts
    others = [other for other, _ in diagnosis.others if other is not facts]
    ranks = [one.rank for one in (facts, *others)]
    one_job = None not in ranks and len({*ranks}) == len(ranks)
    return energy(run, [facts, *(others if one_job else ())])


def to_json(found: Energy, price: Price | None = None) -> dict[str, Any]:
    """In J and W; what is not known is None, and `lacks` says why. `cost` only with a price."""
    cost = None if price is None else {
        "price_per_kwh": price.per_kwh, "currency": price.currency, "run": price.of(found.run_j),
        "step": price.of(found.step_j), "sample": price.of(found.sample_j)}
    return {
        "cards": list(found.cards), "method": found.method or None,
        "least_s": found.least_ns / 1e9 or None, "run_j": found.run_j, "run_share": found.run_share,
        "steps": found.steps, "step_j": found.step_j,
        "step_range_j": None if found.low is None else [found.low, found.high],
        "sample_j": found.sample_j, "unit": found.unit, "power_w": found.power_w,
        "stages_j": dict(found.stages) or None, "excluded": found.excluded, "shared": found.shared,
        "cost": cost, "lacks": dict(found.lacks)}


def rows(found: Energy, price: Price | None = None) -> list[tuple[str, str, str]]:
    """(figure, value, why it is missing), for a table."""
    why = found.lacks
    told = [("Whole run", _whole(found), why.get("run", "not known")),
            (f"Of a {found.unit}", format_energy(found.sample_j, found.unit), why.get("sample", "")),
            ("Of a step", _step(found), why.get("step", "")),
            ("Mean power in these steps", format_power(found.power_w), why.get("step", "")),
            ("Of stages", listed(_stages(found)), why.get("stages", "")),
            ("Measured by", f"{found.method}, of {_named(found.cards)}" if found.method else "", "")]
    if price is not None:
        told.append((f"Cost at {price}, of the GPUs alone",
                     _cost(found, price), why.get("run", "")))
    return _folded([(name, value, "" if value else why) for name, value, why in told if value or why])


def _named(cards: Sequence[str]) -> str:
    """GPU 0, GPU 1; of more than four in a row the first and the last: GPU 0 to GPU 7."""
    if len(cards) > 4 and list(cards) == [f"GPU {k}" for k in range(len(cards))]:
        return f"{cards[0]} to {cards[-1]}"
    return listed(cards)


def _folded(told: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The same, one row for neighbours that are missing for the same reason."""
    kept: list[tuple[str, str, str]] = []
    for name, value, why in told:
        if why and kept and kept[-1][2] == why:
            kept[-1] = (f"{kept[-1][0]}, {name[:1].lower()}{name[1:]}", "", why)
        else:
            kept.append((name, value, why))
    return kept


def lines(found: Energy, price: Price | None = None) -> list[str]:
    """For the terminal: what is known, or why nothing is. Nothing of a run without a GPU in use."""
    if not found.cards:
        return []
    if found.run_j is None:
        return [f"energy not known: {found.lacks.get('run', 'readings tell of no time in this run')}"]
    step, sample = _step(found), format_energy(found.sample_j, found.unit)
    each = listed((sample, step, f"{format_power(found.power_w)} in the mean" if step else ""))
    unknown = f"of a step not known: {found.lacks.get('step', '')}"
    told = [f"energy: {each or unknown}",
            f"{_whole(found, 'over the whole run', 'the run')}, by {found.method}, of {_named(found.cards)}"]
    if found.stages:
        told.append(listed(_stages(found)))
    if price is not None:
        told.append(f"cost at {price}: {_cost(found, price)}, of the GPUs alone")
    return told


def notes(found: Energy) -> list[str]:
    """What must be said beside the figures."""
    told = []
    if found.shared:
        told.append("Other programs used these GPUs too: the energy is that of all of them")
    if found.excluded:
        told.append(f"At least {plural(found.excluded, 'reading')} of power or energy that cannot be "
                    f"{'is' if found.excluded == 1 else 'are'} left out")
    return told


def _stages(found: Energy) -> list[str]:
    return [f"{stage_title(stage)} {format_energy(joules, 'step')}" for stage, joules in found.stages.items()]


def _whole(found: Energy, all_of_it: str = "", run: str = "it") -> str:
    """With the share of the run that readings tell of, where that is not all."""
    text = format_joules(found.run_j)
    over = f"over {format_share(found.run_share)} of {run}" if found.run_share < 0.99 else all_of_it
    return f"{text} {over}".rstrip() if text else ""


def _step(found: Energy) -> str:
    """With the range, where it is wider than the digits."""
    text = format_energy(found.step_j, "step")
    if found.low is None or found.high is None or found.high <= found.low * 1.01:
        return text
    ends = [format_energy(value, "step").split(NBSP)[0] for value in (found.low, found.high)]
    return f"{text} ({ends[0]} to {ends[1]} if readings are {format_time(found.least_ns / 2)} late or early)"


def _cost(found: Energy, price: Price) -> str:
    run, sample = price.of(found.run_j), price.of(found.sample_j)
    million = None if sample is None else 1e6 * sample
    return listed((f"{price.text(run)} for the run" if run is not None else "",
                   f"{price.text(million)} for a million {found.unit}s" if million is not None else ""))


@dataclass(frozen=True)
class EnergyRatio:
    """J a step of A over that of B: above 1 B needs less. The 95 % interval is None with too few groups."""

    ratio: float
    interval: tuple[float, float] | None

    @property
    def text(self) -> str:
        if self.interval is not None and self.interval[0] <= 1 <= self.interval[1]:
            return f"no difference shown, A over B {format_ratio(self.ratio, self.interval)}"
        return f"A over B {format_ratio(self.ratio, self.interval)}"


def ratio(a: Energy, b: Energy, seed: int = 0) -> EnergyRatio | None:
    """Bootstrapped over groups of steps that take a second or more: shorter ones are not independent.

    None where either is not known. The interval is of the noise within the two runs alone.
    """
    if not a.step_j or not b.step_j:
        return None
    middle = a.step_j / b.step_j
    if min(len(a.blocks), len(b.blocks)) < FEWEST:
        return EnergyRatio(middle, None)
    random = np.random.default_rng(seed)
    one, two = (random.choice(side.blocks, (RESAMPLES, len(side.blocks))).mean(axis=1) for side in (a, b))
    low, high = np.percentile(one / two, (2.5, 97.5))
    return EnergyRatio(middle, (min(float(low), middle), max(float(high), middle)))


def compared(sides: Sequence[Energy | None]) -> dict[str, Any] | None:
    """Two runs' energy as plain values; None where neither is one with energy of its steps."""
    a, b = sides
    if a is None or b is None or not (a.step_j or b.step_j):
        return None
    found = ratio(a, b)
    return {"a": to_json(a), "b": to_json(b), "ratio": found.ratio if found else None,
            "interval": list(found.interval) if found and found.interval else None,
            "text": found.text if found else ""}


def comparison_notes(sides: Sequence[Energy | None]) -> list[str]:
    """What must be said beside two runs' energy; nothing where none is told."""
    a, b = sides
    if a is None or b is None or not (a.step_j or b.step_j):
        return []
    found = [f"{name}: {note}" for name, side in (("A", a), ("B", b)) for note in notes(side)]
    if a.step_j and b.step_j and a.method != b.method:
        found.append(f"Energy is by {a.method} in A and by {b.method} in B: the two may differ by themselves")
    return found


def comparison_lines(told: Mapping[str, Any] | None) -> list[str]:
    """Of `compared`, for people."""
    if told is None:
        return []
    sides = []
    for name in "ab":
        side = told[name]
        step = format_energy(side["step_j"], "step")
        said = f"{step} by {side['method']}" if step else f"not known ({side['lacks'].get('step', '')})"
        sides.append(f"{name.upper()} {said}")
    return [f"Energy: {', '.join(sides)}{'; ' if told['text'] else ''}{told['text']}"]
