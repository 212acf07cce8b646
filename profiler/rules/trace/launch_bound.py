"""The device waits for launches: many small kernels, each of which costs the host more than the device."""

from __future__ import annotations

import numpy as np

from profiler.analysis.trace.breakdown.partition import launching_times
from profiler.analysis.trace.intervals import intersect
from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.trace.evidence import (
    SOURCE,
    at_most,
    classes,
    doubts,
    idle,
    line_at,
    severity,
    site,
    small,
    unit,
)
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.settings import against_launches
from profiler.trace.model import Ints

NAME = "launch_bound"
TITLE = "Launch overhead"
SCENARIO = "no_launch_overhead"


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when launching takes less than 3 % of the step and its removal gives less."""
    if not facts.on_device and not facts.lacks:
        return Outcome(ruled_out="the CPU is the device: nothing is launched")
    if said := small(facts, NAME, SCENARIO):
        return said
    evidence = [Evidence(f"Idle while the host launches, mean per {unit(facts)}", ms(facts.shares.launching),
                         "ms", SOURCE), *classes(facts, "queued")]
    host = facts.trace.host
    rows = np.flatnonzero(facts.joined.kernel_launch & facts.in_step)
    if len(rows):
        evidence.append(Evidence(f"Kernel launches per {unit(facts)}", len(rows) / max(len(facts.windows), 1),
                                 "count", SOURCE))
        evidence.append(Evidence("Median launch call", float(np.median((host.end - host.start)[rows])), "ns",
                                 SOURCE))
    median = facts.kernel_summary.median_ns
    if median is not None:
        evidence.append(Evidence("Median kernel", median, "ns", SOURCE))
    return Outcome((Finding(
        NAME, "The device waits for launches", severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)),
        evidence=tuple(evidence), counter_evidence=doubts(facts, SCENARIO),
        remedy=against_launches(facts, rows),
        advice="Give the device more work per launch: a larger batch, torch.compile, CUDA graphs, "
               "a fused or foreach optimizer.",
        prediction=at_most(facts, SCENARIO), site=_line(facts, rows)),))


def _line(facts: TraceFacts, rows: Ints) -> str | None:
    """Where the loop is while the device idles between launches, else where launches take most time."""
    times = intersect(idle(facts, "host"), launching_times(facts.joined, facts.steps))
    return line_at(facts, times) or site(facts, rows)
