"""The device idles because the host waited for it: synchronisations and scalar reads."""

from __future__ import annotations

import numpy as np

from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.trace.evidence import SOURCE, at_most, classes, doubts, severity, site, small, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.names import Call

NAME = "sync_bound"
TITLE = "Synchronisation"
SCENARIO = "no_sync"


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
    return Outcome((Finding(
        NAME, "The host waits for the device", severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)),
        evidence=tuple(evidence), counter_evidence=doubts(facts, SCENARIO),
        advice="Read scalars (.item(), printing a loss) every so many steps, and never call "
               "torch.cuda.synchronize() in the loop.",
        prediction=at_most(facts, SCENARIO), site=site(facts, rows)),))
