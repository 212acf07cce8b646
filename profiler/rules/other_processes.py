"""Somebody else uses the same GPU."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome

NAME = "other_processes"
TITLE = "Other processes"


def check(facts: Facts) -> Outcome:
    """Lacks NVML's process list where there is none (containers often hide it)."""
    if facts.device is None:
        return Outcome(lacks="no GPU was watched" if facts.on_device else "the loop runs on the CPU")
    others = facts.live.get("gpu.other_processes")
    if others is None:
        return Outcome(lacks="NVML listed no processes")
    if others < 0.05:
        return Outcome(ruled_out="none on this GPU")
    return Outcome((Finding(
        NAME, "Other processes use this GPU", "warning",
        evidence=(Evidence("Processes of others, mean over the steady steps", others, "count", "NVML"),),
        counter_evidence=(Evidence("They may hold memory and do nothing: NVML does not say who computes"),),
        advice="Run alone, or on another GPU: step times and utilization are not this loop's alone."),))
