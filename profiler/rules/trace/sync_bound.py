"""The device idles because the host waited for it: synchronisations and scalar reads."""

from __future__ import annotations

import numpy as np

from profiler.rules.base import Evidence, Finding, Outcome, Remedy, ms
from profiler.rules.trace.evidence import (
    SOURCE,
    at_most,
    classes,
    doubts,
    severity,
    site,
    small,
    unit,
)
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import Ints
from profiler.trace.names import Call, Copy

NAME = "sync_bound"
TITLE = "Synchronisation"
SCENARIO = "no_sync"
READS, COPIES, WITHIN, CALLS = "reads", "copies", "within", "calls"
_SCALARS = ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal")
_TITLES = {READS: "in reads of scalars (.item() and kin)", COPIES: "in copies of tensors to the host",
           WITHIN: "in other operators that synchronise", CALLS: "in synchronising calls of the loop itself"}
_ADVICE = {
    READS: "Read scalars (.item(), printing a loss) every so many steps, and keep them on the device until "
           "then.",
    COPIES: "Copy results to pinned memory with non_blocking=True, and look at them a step later.",
    WITHIN: "Avoid operators whose result's size depends on values (nonzero, unique, masks), and copies from "
            "pageable memory.",
    CALLS: "Do not call torch.cuda.synchronize() or synchronise streams and events in the loop.",
}


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when waiting takes less than 3 % of the step and its removal gives less."""
    if not facts.on_device and not facts.lacks:
        return Outcome(ruled_out="the CPU is the device: nothing is synchronised")
    if said := small(facts, NAME, SCENARIO):
        return said
    host = facts.trace.host
    rows = np.flatnonzero((facts.joined.call == Call.SYNC) & facts.in_step)
    evidence = [*classes(facts, "sync")]
    if len(rows):
        steps = max(len(facts.windows), 1)
        evidence.append(Evidence(f"Synchronising calls per {unit(facts)}", len(rows) / steps, "count",
                                 SOURCE))
        evidence.append(Evidence(f"Host inside them, mean per {unit(facts)}",
                                 ms(int((host.end - host.start)[rows].sum()) / steps), "ms", SOURCE))
    waits, causes = _waits(facts)
    why = _causes(facts, waits, causes)
    evidence += [Evidence(f"Host waits {_TITLES[cause]}, mean per {unit(facts)}",
                          ms(ns / max(len(facts.windows), 1)), "ms", SOURCE) for cause, ns in why.items()]
    copies = why.get(COPIES, 0) > sum(why.values()) / 2
    return Outcome((Finding(
        NAME, "The host waits for the device", severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)),
        evidence=tuple(evidence), counter_evidence=doubts(facts, SCENARIO),
        remedy=Remedy("non_blocking", False, True) if copies else None,
        advice=_ADVICE[next(iter(why), READS)],
        prediction=at_most(facts, SCENARIO), site=site(facts, waits)),))


def _waits(facts: TraceFacts) -> tuple[Ints, list[str]]:
    """Host rows of calls in the counted steps that wait for the device, and what each one is for.

    Left out is waiting for a batch that is copied from pageable memory: that is the copy's.
    """
    joined, host, names = facts.joined, facts.trace.host, facts.trace.names
    copied = joined.launch >= 0
    back = np.flatnonzero(copied & np.isin(joined.copy, (Copy.D2H, Copy.D2H_PAGEABLE, Copy.D2H_PINNED)))
    there = np.flatnonzero(copied & np.isin(joined.copy, (Copy.H2D, Copy.H2D_PAGEABLE, Copy.H2D_PINNED)))
    operator = facts.owners.operator
    reading, batch = set(operator[joined.launch[back]].tolist()), set(operator[joined.launch[there]].tolist())
    waits = joined.call == Call.SYNC
    waits[joined.launch[back]] = True
    rows, causes = [], []
    for row in np.flatnonzero(waits & facts.in_step & (joined.outer_call == np.arange(len(host)))).tolist():
        at = int(operator[row])
        if at >= 0 and at in batch:
            continue
        scalar = at >= 0 and names[host.name[at]] in _SCALARS
        rows.append(row)
        causes.append(CALLS if at < 0 else READS if scalar else COPIES if at in reading else WITHIN)
    return np.array(rows, np.int64), causes


def _causes(facts: TraceFacts, rows: Ints, causes: list[str]) -> dict[str, int]:
    """How long the host waits for each, ns, the longest first."""
    host = facts.trace.host
    found = dict.fromkeys(causes, 0)
    for cause, ns in zip(causes, (host.end - host.start)[rows].tolist(), strict=True):
        found[cause] += ns
    return dict(sorted(found.items(), key=lambda item: -item[1]))
