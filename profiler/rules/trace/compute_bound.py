"""The device computes nearly all the time: that is what a training should do."""

from __future__ import annotations

from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.decision import FULL
from profiler.rules.trace.evidence import SOURCE, classes, unit
from profiler.rules.trace.facts import TraceFacts

NAME = "compute_bound"
TITLE = "Compute"


def check(facts: TraceFacts) -> Outcome:
    """Ruled out where compute takes less than 85 % of the step."""
    if facts.lacks:
        return Outcome(lacks=facts.lacks)
    share = facts.shares.of("compute")
    if share < FULL:
        return Outcome(ruled_out=f"{100 * share:.0f} % of the {unit(facts)}, below 85 %")
    evidence = [*classes(facts, "compute")]
    for group in facts.kernels.by("operator", rows=facts.activities)[:5] if facts.on_device else ():
        per = max(len(facts.windows), 1)
        evidence.append(Evidence(f"Kernels of {group.key[0] or 'no operator'}, sum per {unit(facts)}",
                                 ms(group.total_ns / per), "ms", SOURCE))
    what = "The device" if facts.on_device else "The CPU"
    return Outcome((Finding(
        NAME, f"{what} computes {100 * share:.0f} % of the {unit(facts)}", "info",
        ms(facts.shares.classes["compute"]), evidence=tuple(evidence),
        advice="What is left is the arithmetic: precision, compilation, a larger batch."),))
