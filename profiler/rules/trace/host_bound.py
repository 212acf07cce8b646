"""The device waits for host work around the launches: logging, metrics, evaluation, checkpoints."""

from __future__ import annotations

from profiler.analysis.trace.breakdown.partition import launching_times
from profiler.analysis.trace.intervals import either, subtract
from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.trace.evidence import (
    SOURCE,
    at_most,
    classes,
    doubts,
    idle,
    line_at,
    severity,
    small,
    unit,
)
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import Ints

NAME = "host_bound"
TITLE = "Host work"
SCENARIO = "no_host_work"


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when host work takes less than 3 % of the step and its removal gives less."""
    if said := small(facts, NAME, SCENARIO):
        return said
    shares = facts.shares
    outside = shares.classes.get("host", 0.0) - shares.launching
    what = "Idle before the first and after the last launch" if facts.on_device else "Outside operators"
    evidence = [Evidence(f"{what}, mean per {unit(facts)}", ms(outside), "ms", SOURCE)]
    named = [name for name in shares.classes if name.startswith("other:")]
    for name in sorted(named, key=lambda name: -shares.classes[name]):
        evidence += [Evidence(f"Idle during {e.text.removeprefix('other:')}", e.value, e.unit, e.source)
                     for e in classes(facts, name)]
    title = "The device waits for host work" if facts.on_device else "The loop works outside operators"
    return Outcome((Finding(
        NAME, title, severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)), evidence=tuple(evidence),
        counter_evidence=doubts(facts, SCENARIO),
        advice="Look at what the loop does between steps: logging, metrics, evaluation, checkpoints. "
               "Do it less often, or in a thread of its own.",
        prediction=at_most(facts, SCENARIO), site=line_at(facts, _times(facts))),))


def _times(facts: TraceFacts) -> Ints:
    """When the device waits for host work, ns: int64[n, 2]."""
    outside = subtract(idle(facts, "host"), launching_times(facts.joined, facts.steps))
    return either(outside, idle(facts, "other")) if facts.on_device else idle(facts)
