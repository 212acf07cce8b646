"""What a run's GPUs used: in all, for a step, for a sample, in a stage. Definitions, sections 6 and 8.

Of whole cards: neither a slice of one nor one program's part of a shared card can be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from profiler.analysis.devices import card_of, held
from profiler.analysis.energy import BUFFER, COUNTER, POWER, Meter, bound, by_counter, by_power
from profiler.analysis.facts import Facts
from profiler.analysis.series import BoolArray, FloatArray
from profiler.analysis.steps import Steps
from profiler.metrics import stage_title
from profiler.model import STAGES, Device
from profiler.units import format_time

if TYPE_CHECKING:
    from profiler.run.reader import Run

TOUCH_NS = 1_000_000  # between two steps that follow each other at once
BLOCKS = 200  # at most, that stand for how much energy a step varies
MUCH_MORE = 2.0  # of the run, from which another way to tell its energy is the better one
STAGE = 3  # times the shortest time of a claim that a stage takes at least: its two ends are smeared by it
SHARP = 0.1  # of a stage that the device may lag, and of a step whose place in it is not known
WAYS = ((COUNTER, "gpu.energy"), (POWER, "gpu.power"), (BUFFER, "gpu.power_samples"))


@dataclass(frozen=True)
class Energy:
    """Energy in J of all `cards` together. What is None is not known: `lacks` says why.

    `run_j`: of the share `run_share` of the recording, of which readings tell. `step_j`: mean over the
    `steps` steady steps that lie in stretches long enough for a claim; between `low` and `high` if all
    readings are late or early by as much as they may be. `blocks`: J a step of groups of these steps,
    of about `least_ns` or more: they say how much it varies. `stages`: J a step while the loop's thread was
    there. `excluded`: at least so many readings cannot be and are left out. `shared`: other programs were on
    a card as well.
    """

    cards: tuple[str, ...] = ()
    method: str = ""
    least_ns: int = 0
    run_j: float | None = None
    run_share: float = 0.0
    steps: int = 0
    step_j: float | None = None
    low: float | None = None
    high: float | None = None
    sample_j: float | None = None
    unit: str = "sample"
    power_w: float | None = None  # mean over those steps
    blocks: FloatArray = field(default_factory=lambda: np.empty(0))
    stages: Mapping[str, float] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)  # by run, step, sample, stages
    excluded: int = 0
    shared: bool = False


@dataclass(frozen=True)
class _Card:
    """What one card's readings say. J of each steady step as float64[n], NaN where not known."""

    method: str
    least_ns: int
    excluded: int
    run_j: float
    run_ns: int
    joules: FloatArray
    early: FloatArray  # if its readings are late by half of `least_ns`
    late: FloatArray
    stages: Mapping[str, FloatArray]


def energy(run: Run, loops: Sequence[Facts]) -> Energy:
    """Of the cards that these loops use, in the first one's steps: several loops are the ranks of one job.

    Of a run without a loop all that was watched.
    """
    facts = loops[0]
    steps = facts.steps.select(facts.steady.mask)
    cards = _cards(run, loops)
    names = tuple(card.label for card in cards)
    told = [_read(run, card, steps) for card in cards]
    found = [one for one in told if one is not None]
    if not found or len(found) < len(told):
        silent = [name for name, one in zip(names, told, strict=True) if one is None]
        why = f"{', '.join(silent)} told neither an energy counter that rises nor power" if silent else \
            "the loop runs on the CPU" if len(facts.steps) and not facts.on_device else "no GPU was watched"
        return Energy(names, lacks=dict.fromkeys(("run", "step", "sample", "stages"), why))
    took = run.end_ns - run.start_ns
    known_ns = sum(one.run_ns for one in found) / len(found)
    whole = Energy(
        names, " and ".join(dict.fromkeys(one.method for one in found)), max(one.least_ns for one in found),
        sum(one.run_j for one in found) if all(one.run_ns for one in found) else None,
        min(1.0, known_ns / took) if took > 0 else 0.0,
        excluded=sum(one.excluded for one in found) + _doubted(run, {card.id for card in cards}),
        shared=any(one.live.get("gpu.other_processes", 0.0) > 0 for one in loops))
    if any(_split(run, card) for card in cards):
        why = "the energy of the whole card is not a slice's"
        return replace(whole, lacks=dict.fromkeys(("step", "sample", "stages"), why))
    return _of_steps(whole, found, loops, steps)


def meter(run: Run, card: Device) -> Meter | None:
    """The readings of a card, by the best way there is: one that tells of little of the run gives way."""
    most, (t0, t1) = bound(card.properties.get("power_limit_w")), (run.start_ns, run.end_ns)
    best: Meter | None = None
    for method, metric in WAYS:
        for track in run.find(metric, device=card.id):
            values = run.values(track.id)
            found = by_counter(*values, most) if method == COUNTER else by_power(*values, most, method)
            if found and (best is None or found.known(t0, t1)[1] > MUCH_MORE * best.known(t0, t1)[1]):
                best = found
        if best is not None and best.known(t0, t1)[1] > (t1 - t0) / MUCH_MORE:
            break
    return best


def _doubted(run: Run, cards: Set[int]) -> int:
    """How often a source told that a reading of energy or power cannot be: once for all in a row."""
    return sum(event.kind == "implausible" and event.device in cards
               and any(metric in str(event.data.get("metrics")) for _, metric in WAYS)
               for event in run.events())


def _read(run: Run, card: Device, steps: Steps) -> _Card | None:
    """One card at a time: the readings of a day are many."""
    found = meter(run, card)
    if found is None:
        return None
    t0, t1, half = steps.t0_ns, steps.t1_ns, found.least_ns // 2
    stages, start = {}, t0
    for stage in STAGES if len(steps) and _longest(steps)[1] >= STAGE * found.least_ns else ():
        end = start + steps.stages[stage]
        stages[stage] = found.used(start, end)
        start = end
    return _Card(found.method, found.least_ns, found.excluded, *found.known(run.start_ns, run.end_ns),
                 found.used(t0, t1), found.used(t0 - half, t1 - half), found.used(t0 + half, t1 + half),
                 stages)


def _cards(run: Run, loops: Sequence[Facts]) -> list[Device]:
    """Each card once, with all of which a loop's allocator holds memory."""
    devices = {device.id: device for device in run.devices}
    used: list[Device] = []
    for facts in loops:
        reserved = held(run, facts.process.id) if facts.process else {}
        mine = [devices[number] for number, size in reserved.items() if size > 0]
        used += mine or ([facts.device] if facts.device else [])
    if not any(len(facts.steps) for facts in loops):
        used = used or list(run.devices)
    cards = {card.id: card for card in (card_of(run, device) for device in used)}
    return sorted(cards.values(), key=lambda card: (card.index, card.id))


def _split(run: Run, card: Device) -> bool:
    """Whether MIG or a partition splits the card."""
    return any(card.uuid in (one.properties.get("mig_parent"), one.properties.get("part_of"))
               for one in run.devices if one is not card)


def _of_steps(whole: Energy, cards: Sequence[_Card], loops: Sequence[Facts], steps: Steps) -> Energy:
    every = _sum([card.joules for card in cards])
    mask = _counted(steps, ~np.isnan(every), whole.least_ns)
    if loops[0].lacks or not mask.any():
        why = loops[0].lacks or (f"readings tell of no {format_time(whole.least_ns)} of steady steps "
                                 "without a gap")
        return replace(whole, lacks=dict.fromkeys(("step", "sample", "stages"), why))
    picked, joules = steps.select(mask), every[mask]
    step_j, per_step = float(joules.mean()), _samples(loops, picked)
    moved = [_mean(_sum([getattr(card, name) for card in cards])[mask]) for name in ("early", "late")]
    told = [step_j, *(value for value in moved if value is not None)]
    no_stages = _no_stages(picked, loops[0], STAGE * whole.least_ns)
    stages = {} if no_stages else {
        stage: mean for stage in STAGES if picked.stages[stage].mean() >= STAGE * whole.least_ns
        and (mean := _mean(_sum([card.stages[stage] for card in cards])[mask])) is not None}
    lacks = {"sample": "" if per_step else "how many samples a step has is not known", "stages": no_stages}
    return replace(
        whole, steps=len(picked), step_j=step_j, low=min(told), high=max(told),
        sample_j=step_j / per_step if per_step else None, unit=picked.unit.removesuffix("s"),
        power_w=float(joules.sum() / (picked.wall.sum() / 1e9)),
        blocks=_blocks(picked, joules, whole.least_ns), stages=stages,
        lacks={name: why for name, why in lacks.items() if why})


def _sum(parts: Sequence[FloatArray]) -> FloatArray:
    """Of all cards; NaN where one is not known."""
    return np.sum(parts, axis=0)


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _counted(steps: Steps, known: BoolArray, least_ns: int) -> BoolArray:
    """Steps in stretches without a gap that are long enough for a claim."""
    mask = np.zeros(len(steps), bool)
    where = np.flatnonzero(known)
    follows = (np.diff(where) == 1) & (steps.t0_ns[where[1:]] - steps.t1_ns[where[:-1]] <= TOUCH_NS)
    for part in np.split(where, np.flatnonzero(~follows) + 1):
        if len(part) and steps.t1_ns[part[-1]] - steps.t0_ns[part[0]] >= least_ns:
            mask[part] = True
    return mask


def _blocks(steps: Steps, joules: FloatArray, least_ns: int) -> FloatArray:
    """J a step of groups of steps that take about `least_ns` or more, BLOCKS at most."""
    size = max(least_ns / max(float(steps.wall.mean()), 1.0), len(steps) / BLOCKS, 1.0)
    return np.array([part.mean() for part in np.array_split(joules, max(1, int(len(steps) / size)))])


def _samples(loops: Sequence[Facts], steps: Steps) -> float:
    """Samples, or tokens, of all loops in a step; 0 where they are not known."""
    others = [facts.steps.select(facts.steady.mask) for facts in loops[1:]]
    means = [float(one.extras["samples"].mean()) if len(one) else float("nan") for one in (steps, *others)]
    return sum(means) if all(mean >= 0 for mean in means) else 0.0


def _longest(steps: Steps) -> tuple[str, float]:
    """(stage, mean ns) of the stage that takes longest."""
    walls = {stage: float(steps.stages[stage].mean()) for stage in STAGES if stage != "other"}
    return max(walls.items(), key=lambda item: item[1])


def _no_stages(steps: Steps, facts: Facts, least_ns: int) -> str:
    """Why no stage's energy can be told; "" where it can."""
    stage, took = _longest(steps)
    if took < least_ns:
        return (f"the longest, {stage_title(stage)}, takes {format_time(took)}, and readings tell of nothing "
                f"shorter than {format_time(least_ns)}")
    if float(steps.stages["other"].mean()) > SHARP * float(steps.wall.mean()):
        return "where they lie in a step is not known: much of it is between them"
    if facts.summary is None or not facts.summary.lag:
        return "how far the device lags behind them is not known"
    if max(facts.summary.lag.values()) > SHARP * took:
        return "the device does a stage's work when the loop's thread is in a later one"
    return ""
