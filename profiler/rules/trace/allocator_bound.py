"""The device waits for memory calls: cudaMalloc, cudaFree and kin, most of which synchronise."""

from __future__ import annotations

import numpy as np

from profiler.rules.base import Evidence, Finding, Outcome, Remedy, ms
from profiler.rules.trace.evidence import SOURCE, at_most, classes, doubts, severity, site, small, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.names import Call

NAME = "allocator_bound"
TITLE = "Memory calls"
SCENARIO = "no_allocator"
_KEEP = "Do not call torch.cuda.empty_cache() in the loop, and leave memory free for the allocator to keep."
_FULL = "The device's memory is full: use a smaller batch or fewer tensors, so that memory stays free."


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when memory calls take less than 3 % of the step and their removal gives less."""
    if not facts.on_device and not facts.lacks:
        return Outcome(ruled_out="the CPU is the device: its allocator makes no calls")
    if said := small(facts, NAME, SCENARIO):
        return said
    host, steps = facts.trace.host, max(len(facts.windows), 1)
    rows = np.flatnonzero((facts.joined.call == Call.ALLOCATOR) & facts.in_step)
    evidence = [*classes(facts, "allocator")]
    for code in np.unique(host.name[rows]).tolist():
        own = rows[host.name[rows] == code]
        name = facts.trace.names[code]
        evidence.append(Evidence(f"{name} per {unit(facts)}", len(own) / steps, "count", SOURCE))
        evidence.append(Evidence(f"Host inside {name}, mean per {unit(facts)}",
                                 ms(int((host.end - host.start)[own].sum()) / steps), "ms", SOURCE))
    again = facts.allocator_calls.retries_in_steps
    if again:
        evidence.append(Evidence("Memory ran out: cached memory given back and asked for again, per "
                                 f"{unit(facts)}", again / steps, "count", SOURCE))
    return Outcome((Finding(
        NAME, "The allocator calls the driver in every step" if facts.steps.per_step
        else "The allocator calls the driver", severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)),
        evidence=tuple(evidence), counter_evidence=doubts(facts, SCENARIO),
        remedy=Remedy("PYTORCH_CUDA_ALLOC_CONF", None, "expandable_segments:True"),
        advice=_FULL if again else _KEEP,
        prediction=at_most(facts, SCENARIO), site=site(facts, rows)),))
