"""Copies of the batch to the device that nothing hides, and pinned memory against them."""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.device.copies import copies
from profiler.rules.base import Evidence, Finding, Outcome, Remedy, ms
from profiler.rules.decision import GAIN
from profiler.rules.recording.transfer_bound import AHEAD as AHEAD_OF
from profiler.rules.recording.transfer_bound import JOIN, MANY, SMALL
from profiler.rules.trace.evidence import SOURCE, at_most, classes, doubts, severity, site, small, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import Flags
from profiler.trace.names import Copy

NAME = "transfer_bound"
TITLE = "Copies to the device"
SCENARIOS = ("no_transfer", "overlapped_transfer")
PINNED, AHEAD = Remedy("pin_memory", False, True), Remedy("prefetch_to_device", False, True)
_TITLES = {PINNED.setting: "Pageable copies: pin_memory on", AHEAD.setting: "Copies one batch ahead"}


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when exposed copies take less than 3 % of the step and their removal gives less."""
    if not facts.on_device and not facts.lacks:
        return Outcome(ruled_out="the CPU is the device: nothing is copied")
    if said := small(facts, NAME, *SCENARIOS):
        return said
    evidence = [*classes(facts, "transfer_exposed", "transfer_host")]
    for kind, ns in facts.transfer_by_kind.items():
        if ns:
            text = f"Of the exposed copies {kind}, mean per {unit(facts)}"
            evidence.append(Evidence(text, ms(ns), "ms", SOURCE))
    copy = facts.joined.copy
    pageable, pinned = copy == Copy.H2D_PAGEABLE, copy == Copy.H2D_PINNED
    for rows, text in ((pageable, "Pageable copies to the device"), (pinned, "Pinned copies to the device")):
        if (moved := _moved(facts, rows)) is not None:
            size, rate = moved
            over = f"the {len(facts.windows)} counted steps" if facts.steps.per_step else "the trace"
            evidence.append(Evidence(f"{text}, in {over}", size, "B", SOURCE))
            evidence.append(Evidence(f"{text}, rate", rate, "B/s", SOURCE))
    count, mean, hidden = _batch(facts)
    evidence += [Evidence(f"Copies to the device per {unit(facts)}", count, "count", SOURCE),
                 Evidence("Of their time beside compute", hidden, "share", SOURCE)]
    crumbs = count >= MANY and mean is not None and mean < SMALL
    remedy = None if crumbs else _remedy(facts, _time(facts, pageable) > _time(facts, pinned))
    rows = facts.joined.launch[facts.activities & (pageable | pinned | (copy == Copy.H2D))]
    return Outcome((Finding(
        NAME, "Many small copies" if crumbs else
        _TITLES.get(remedy.setting if remedy else "", "Copies of the batch take time"),
        severity(facts, NAME, *SCENARIOS), ms(facts.cost(NAME)), evidence=tuple(evidence),
        counter_evidence=doubts(facts, *SCENARIOS), remedy=remedy,
        advice="" if remedy else JOIN if crumbs else f"{AHEAD_OF}, or in a smaller type (uint8).",
        prediction=at_most(facts, *(SCENARIOS if remedy != AHEAD else SCENARIOS[1:])),
        site=site(facts, rows[rows >= 0])),))


def _remedy(facts: TraceFacts, pageable: bool) -> Remedy | None:
    """Pinned memory for pageable batches; for pinned ones copies one batch ahead, where these gain."""
    if pageable:
        return PINNED
    told = facts.scenario("overlapped_transfer")
    return AHEAD if told is not None and told.speedup > GAIN else None


def _batch(facts: TraceFacts) -> tuple[float, float | None, float]:
    """Copies to the device per step, their mean size in bytes, and the share of their time beside compute."""
    found = [c for c in copies(facts.joined, facts.activities) if c.kind.startswith("h2d")]
    count, took = sum(c.count for c in found), sum(c.total_ns for c in found)
    size = sum(c.bytes or 0 for c in found)
    hidden = sum(c.overlapped_ns for c in found)
    return (count / max(len(facts.windows), 1), size / count if size and count else None,
            hidden / took if took else 0.0)


def _time(facts: TraceFacts, rows: Flags) -> int:
    device = facts.trace.device
    own = rows & facts.activities
    return int((device.end - device.start)[own].sum())


def _moved(facts: TraceFacts, rows: Flags) -> tuple[int, float] | None:
    """Bytes, and bytes per second, over copies whose size is told; None without any."""
    device = facts.trace.device
    own = np.flatnonzero(rows & facts.activities & (device.bytes > 0) & (device.end > device.start))
    time = int((device.end - device.start)[own].sum())
    size = int(device.bytes[own].sum())
    return (size, size * 1e9 / time) if time else None
