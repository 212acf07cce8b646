"""Which ceiling a run leans on: its step beside those of its stages alone, in words.

With workers loader and loop run beside each other, so that a step takes at least as long
as the slower of the two, and the run leans on that one when it takes no longer. Without
workers one follows the other, and their times add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profiler.units import format_ms, format_rate, format_ratio, format_share, ms_decimals

REAL, LOADER, CACHED, DEVICE, FORWARD = "real", "loader", "cached", "device", "forward"
NOISE, WIDEST = 0.05, 0.25  # of a step: differences that say nothing, at least and at most
NAMES = {LOADER: "the loader", CACHED: "all but the input", DEVICE: "computing", FORWARD: "forward"}


@dataclass(frozen=True)
class Level:
    """A stage's step in ms for the run's own batch: median and range over repeats."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the range over the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


@dataclass(frozen=True)
class Leaning:
    """`on`: a stage, None where nothing can be said; `also`: one that is as low within noise.

    `how`: "reaches" its ceiling; "adds": the times add up, and this is the larger part;
    "between": they sum to more than the run; "above": slower than either ceiling explains; "unknown".
    """

    on: str | None
    how: str
    text: str
    also: tuple[str, ...] = ()


def lean(levels: Mapping[str, Level], workers: int | None, batch: float | None = None,
         unit: str = "samples") -> Leaning:
    """`levels` by stage name; those that were not measured are missing. `batch`: work in a step."""
    if REAL not in levels:
        return Leaning(None, "unknown", "The run itself was not measured, so that nothing can be compared.")
    real = levels[REAL]
    told = _Words(real.median, batch, unit)
    work = levels.get(CACHED) or levels.get(DEVICE)
    if LOADER not in levels or work is None:
        return _of_one(levels, told)
    loader = levels[LOADER]
    noise = _noise(real, loader, work)
    slower, faster = (LOADER, CACHED) if loader.median >= work.median else (CACHED, LOADER)
    ceiling, other = (loader, work) if slower == LOADER else (work, loader)
    beside = workers or other.median < NOISE * real.median
    if beside and real.median <= ceiling.median * (1 + noise):
        also = (faster,) if other.median >= ceiling.median * (1 - noise) else ()
        return _reaches(slower, also, levels, told, noise)
    both = f"{told.of(loader.median)} for the loader and {told.of(work.median)} for all but the input"
    if workers:
        text = (f"Alone it would be {both}, the run takes {told.of(real.median)}: it reaches neither. "
                "Loader and loop slow each other down (they share the cores), or batches come unevenly.")
        return Leaning(slower, "above", text + _parts(levels, told, noise))
    sum_ms = loader.median + work.median
    share = format_share(ceiling.median / sum_ms)
    if real.median < sum_ms * (1 - noise):
        how = "between"
        text = (f"Without workers {both} are more than the {told.of(real.median)} that the run takes: they "
                "overlap in part, as work of a device may, or the noise is large.")
    else:
        how, text = "adds", (f"Without workers the times add: {both} are {told.of(sum_ms)} of the "
                             f"{told.of(real.median)} that the run takes.")
    larger = f" The larger part, {share}, is {NAMES[slower]}."
    return Leaning(slower, how, text + larger + _parts(levels, told, noise))


def _noise(*levels: Level) -> float:
    return min(WIDEST, max(NOISE, *(level.spread for level in levels)))


@dataclass(frozen=True)
class _Words:
    """How times are told: as rates where the work of a step is known."""

    real_ms: float
    batch: float | None
    unit: str

    def of(self, ms: float) -> str:
        return format_ms(ms * 1e6, ms_decimals(self.real_ms * 1e6))

    def rate(self, ms: float) -> str:
        return format_rate(self.batch * 1e3 / ms, f"{self.unit}/s") if self.batch and ms > 0 else self.of(ms)


def _reaches(stage: str, also: tuple[str, ...], levels: Mapping[str, Level], told: _Words,
             noise: float) -> Leaning:
    real, ceiling = levels[REAL].median, (levels.get(stage) or levels[DEVICE]).median
    subject = "The loader alone" if stage == LOADER else "Without input the loop"
    verb = "gives" if told.batch else "takes"
    text = f"{subject} {verb} {told.rate(ceiling)}, the run {told.rate(real)}: it leans on {NAMES[stage]}"
    if also:
        text += f" and, as near as can be told, on {NAMES[also[0]]}"
    text += "."
    if real < ceiling * (1 - noise):
        text += (" That the run is faster says that the first batch is no typical one, or that the noise is "
                 "large.")
    work = levels.get(CACHED) or levels[DEVICE]
    if stage == LOADER and not also:
        return Leaning(stage, "reaches", text + f" Without input it would give {told.rate(work.median)}, "
                       f"{format_ratio(real / work.median)} at most.")
    return Leaning(stage, "reaches", text + _parts(levels, told, noise), also)


def _parts(levels: Mapping[str, Level], told: _Words, noise: float) -> str:
    """What the loop's own work consists of."""
    text = ""
    cached, device, forward = (levels.get(name) for name in (CACHED, DEVICE, FORWARD))
    if cached and device:
        saved = cached.median - device.median
        text += (f" Copies of the batch take {told.of(saved)} of it." if saved > noise * cached.median
                 else " Copies of the batch cost nothing that can be seen.")
    work = device or cached
    if work and forward and forward.median < work.median:
        text += (f" Backward and optimizer take {told.of(work.median - forward.median)} of it, forward with "
                 f"the rest of the loop {told.of(forward.median)}.")
    return text


def _of_one(levels: Mapping[str, Level], told: _Words) -> Leaning:
    """Loader or loop was not measured alone: nothing stands against the other."""
    real = levels[REAL]
    name = next((name for name in (LOADER, CACHED, DEVICE) if name in levels), None)
    if name is None:
        return Leaning(None, "unknown", "No stage was measured alone, so that nothing can be compared."
                       + _parts(levels, told, NOISE))
    level = levels[name]
    noise = _noise(real, level)
    if real.median <= level.median * (1 + noise):
        return Leaning(name, "reaches", f"Alone {NAMES[name]} would be {told.rate(level.median)}, the run "
                       f"is {told.rate(real.median)}: it leans on that." + _parts(levels, told, noise))
    return Leaning(None, "unknown", f"Alone {NAMES[name]} would be {told.rate(level.median)}, the run is "
                   f"{told.rate(real.median)}; what else it waits for was not measured alone."
                   + _parts(levels, told, noise))
