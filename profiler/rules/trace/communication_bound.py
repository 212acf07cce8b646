"""Communication with other ranks that no compute hides, waiting for them among it."""

from __future__ import annotations

import numpy as np

from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.decision import GAIN
from profiler.rules.trace.evidence import SOURCE, at_most, classes, doubts, severity, site, small, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.settings import against_communication

NAME = "communication_bound"
TITLE = "Communication"
SCENARIOS = ("no_communication", "overlapped_communication")


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when exposed communication takes less than 3 % of the step and its removal gives less."""
    if not facts.on_device and not facts.lacks:
        return Outcome(ruled_out="no communication kernel runs")
    if said := small(facts, NAME, *SCENARIOS):
        return said
    told, steps = facts.communication, max(len(facts.windows), 1)
    rows = facts.joined.launch[facts.activities & facts.joined.communication]
    per = f"mean per {unit(facts)}"
    evidence = [*classes(facts, "communication_exposed"),
                Evidence(f"Communication in all, {per}", ms(told.time_ns / steps), "ms", SOURCE),
                Evidence(f"Of it beside compute, {per}", ms(told.overlapped_ns / steps), "ms", SOURCE)]
    for row in told.kinds[:3]:
        rate = f", {row.bus_gbs:.1f} GB/s on the bus" if row.bus_gbs is not None else ""
        group = f" of group {row.group}" if row.group else ""
        evidence.append(Evidence(f"{row.count} {row.collective}{group}{rate}, {per}", ms(row.time_ns / steps),
                                 "ms", SOURCE))
    against = (*doubts(facts, *SCENARIOS),
               Evidence("A collective's time holds waiting for the other ranks", source=SOURCE))
    overlapped = facts.scenario("overlapped_communication")
    overlaps = overlapped is not None and overlapped.speedup > GAIN
    advice = "Communicate less: larger batches, gradient accumulation, bfloat16 or sharded gradients."
    if overlaps:
        advice = "Let gradients travel during backward: DistributedDataParallel with buckets, no no_sync, " \
                 "static_graph, or a smaller bucket_cap_mb."
    return Outcome((Finding(
        NAME, "Communication that nothing hides", severity(facts, NAME, *SCENARIOS), ms(facts.cost(NAME)),
        evidence=tuple(evidence), counter_evidence=against, advice=advice,
        remedy=against_communication(facts, overlaps), prediction=at_most(facts, *SCENARIOS),
        site=site(facts, rows[rows >= 0].astype(np.int64))),))
