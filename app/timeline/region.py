"""What happened in a stretch of time: its partition, a verdict, statistics. Free of Qt, no widgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from profiler.analysis.steps import Steps as RecordedSteps
from profiler.analysis.trace import intervals
from profiler.analysis.trace.breakdown.partition import partition
from profiler.analysis.trace.device.overlap import devices
from profiler.analysis.trace.device.queue import depths
from profiler.analysis.trace.steps import WHOLE, Steps
from profiler.metrics import stage_title
from profiler.model import STAGES
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.verdict import Shares, decide
from profiler.rules.words import CLASS_STAGES, FLAGS, class_title, verdict_title
from profiler.trace.model import NONE, Kind
from profiler.units import (
    NBSP,
    TIMES,
    format_count,
    format_ms,
    format_number,
    format_share,
    format_time,
    ms_decimals,
)

NOTHING = "Neither a trace nor a step lies in this region."


@dataclass(frozen=True)
class Part:
    """A share of a region. `stage`: whose colour it wears."""

    name: str
    ns: int
    stage: str


@dataclass(frozen=True)
class Region:
    """What is said of a stretch of time. `parts` sum to `window` where they are a partition."""

    t0: int
    t1: int
    title: str = ""
    flag: str = ""  # stage whose hatch the verdict wears
    verdict: str = ""  # "" where nothing can be claimed
    sentence: str = ""
    head: str = ""  # over the parts
    parts: tuple[Part, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def window(self) -> int:
        return self.t1 - self.t0


def to_json(region: Region) -> dict[str, Any]:
    return asdict(region)


def from_json(told: Mapping[str, Any]) -> Region:
    return Region(
        **{
            **told,
            "parts": tuple(Part(**part) for part in told["parts"]),
            "figures": tuple((str(a), str(b)) for a, b in told["figures"]),
        }
    )


def of_trace(facts: TraceFacts, t0: int, t1: int, rank: str = "") -> Region:
    """Of [t0, t1), ns on the trace's clock."""
    j = facts.joined
    title = name_of(facts.found, t0, t1)
    window = replace(
        facts.found,
        rule=WHOLE,
        number=np.array([NONE]),
        start=np.array([t0]),
        end=np.array([t1]),
        window=np.array([0]),
        counted=np.array([True]),
        notes=(),
    )
    part = partition(j, window, labels=facts.labels)
    ns = dict(zip(part.classes, part.ns[0].tolist(), strict=True))
    parts = tuple(
        Part(class_title(name), value, CLASS_STAGES.get(name, "other"))
        for name, value in sorted(ns.items(), key=lambda item: -item[1])
        if value > 0
    )
    where = rank if part.device == NONE else f"GPU {part.device}" + (f", {rank}" if rank else "")
    region = Region(
        t0,
        t1,
        title,
        head=f"Partition, {where}" if where else "Partition",
        parts=parts,
        figures=_figures(facts, t0, t1, ns),
    )
    if facts.lacks:
        return replace(region, sentence=f"{facts.lacks[:1].upper()}{facts.lacks[1:]}", parts=())
    shares = Shares(float(t1 - t0), {k: float(v) for k, v in ns.items()}, float(part.launching[0]), 1)
    word = decide(shares, {}, None, "no prediction for a region").verdict
    return replace(
        region,
        flag=FLAGS.get(word, "other"),
        verdict=verdict_title(word),
        sentence=_sentence(word, shares, ns, t1 - t0),
    )


def name_of(steps: Steps, t0: int, t1: int) -> str:
    """step #102, where the region is one; else how many it holds."""
    if not steps.per_step:
        return ""
    same = np.flatnonzero((np.abs(steps.start - t0) <= 1) & (np.abs(steps.end - t1) <= 1))
    if len(same):
        return f"step #{int(steps.number[same[0]])}"
    whole = int(((steps.start >= t0) & (steps.end <= t1)).sum())
    return f"{whole} whole step{'' if whole == 1 else 's'}" if whole else "part of a step"


def _sentence(word: str, shares: Shares, ns: Mapping[str, int], window: int) -> str:
    decimals = ms_decimals(window)
    if word == "compute_bound":
        return f"{format_share(shares.of('compute'))} of {format_ms(window, decimals)} is compute"
    cost = sum(value for name, value in ns.items() if shares.word(name) == word)
    if word == "unknown" or not cost:
        return f"No cost stands out in {format_ms(window, decimals)}"
    biggest = max((name for name in ns if shares.word(name) == word), key=lambda name: ns[name])
    return (
        f"{format_ms(cost, decimals, unit=False)} of {format_ms(window, decimals)} without compute: "
        f"{class_title(biggest)}"
    )


def _figures(facts: TraceFacts, t0: int, t1: int, ns: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    j, device, host = facts.joined, facts.trace.device, facts.trace.host
    found: list[tuple[str, str]] = []
    launches = int((j.kernel_launch & (host.start >= t0) & (host.start < t1)).sum())
    kernels = (device.kind == Kind.KERNEL) & (device.start >= t0) & (device.start < t1)
    if launches or kernels.any():
        found.append(("Launches, kernels", f"{format_count(launches)}, {format_count(int(kernels.sum()))}"))
    if kernels.any():
        found.append(("Median kernel", format_time(float(np.median((device.end - device.start)[kernels])))))
    window = np.array([[t0, t1]], np.int64)
    times = {d.device: d for d in devices(j, window)}
    main = times.get(j.main_device)
    if main is not None:
        found.append(("Device busy", format_share(main.busy_ns / (t1 - t0))))
        if main.communication_ns:
            share = main.communication_under_compute_ns / main.communication_ns
            found.append(("Communication under compute", format_share(share)))
    queue = next((d for d in depths(j, window) if d.device == j.main_device and d.stream is None), None)
    if queue is not None and queue.mean is not None:
        found.append(("Queue depth, mean", format_number(queue.mean, 1)))
    waits = {name: value for name, value in ns.items() if name != "compute" and value > 0}
    if waits:
        name = max(waits, key=lambda key: waits[key])
        if waits[name] < t1 - t0:
            bound = (t1 - t0) / (t1 - t0 - waits[name])
            found.append((f"Without {class_title(name)}", f"{format_number(bound, 2)}{NBSP}{TIMES} at most"))
    return tuple(found)


def of_steps(steps: RecordedSteps, t0: int, t1: int, start_ns: int) -> Region:
    """Of the steps that the probe measured: sums of the stages of those that lie in [t0, t1) of the run."""
    inside = (steps.t0_ns - start_ns >= t0 - 1) & (steps.t1_ns - start_ns <= t1 + 1)
    n = int(inside.sum())
    if not n:
        return Region(t0, t1, "no whole step", sentence="No step lies in this region as a whole.")
    wall = steps.wall[inside]
    total = int(wall.sum())
    sums = {stage: int(steps.stages[stage][inside].sum()) for stage in STAGES}
    parts = tuple(Part(stage_title(stage), ns, stage) for stage, ns in sums.items() if ns > 0)
    title = f"step #{int(steps.index[inside][0])}" if n == 1 else f"{format_count(n)} steps"
    biggest = max(parts, key=lambda part: part.ns)
    figures = (
        ("Steps", format_count(n)),
        ("Median step", format_ms(float(np.median(wall)))),
        ("Slowest step", format_ms(float(wall.max()))),
        ("In steps", format_share(total / (t1 - t0))),
    )
    name = biggest.name[:1].upper() + biggest.name[1:]
    sentence = f"{name} takes {format_share(biggest.ns / total)} of the steps. No trace covers this time."
    return Region(
        t0, t1, title, head="Stages on the host", parts=parts, figures=figures, sentence=sentence
    )


def covered(extent: tuple[int, int], t0: int, t1: int) -> tuple[int, int] | None:
    """The part of [t0, t1) that an extent holds; None where it is empty."""
    inside = intervals.clip(np.array([extent], np.int64), t0, t1)
    return (int(inside[0, 0]), int(inside[0, 1])) if len(inside) and inside[0, 1] > inside[0, 0] else None
