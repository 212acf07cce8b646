"""Ranks wait for one that comes late with its gradients."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, ms

NAME = "communication_bound"
TITLE = "Communication"
WORTH = 0.05  # of the step, the longest wait: even ranks on two cores differ by up to 3 %
GRAVE = 0.15


def check(facts: Facts) -> Outcome:
    """Lacks stages of ranks that step together; ruled out where the longest wait is below 5 % of the step."""
    summary = facts.summary
    if summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if facts.rank is None:
        return Outcome(ruled_out="one process trains")
    if not facts.ranks:
        return Outcome(lacks="no other rank was recorded that makes its steps together with this one")
    wait = max(facts.ranks.values())
    if wait < WORTH * summary.step_ns or not wait:
        return Outcome(ruled_out=f"the ranks wait {ms(wait):.1f} of {ms(summary.step_ns):.1f} ms per step "
                                 "for each other; what exchanging gradients takes, a trace tells")
    late = min(facts.ranks, key=lambda rank: facts.ranks[rank])
    source = "CUDA events" if facts.on_device else "probe"
    evidence = [Evidence(f"Backward of rank {rank} above that of rank {late}, mean per step", ms(ns),
                         "ms", source) for rank, ns in sorted(facts.ranks.items()) if rank != late]
    return Outcome((Finding(
        NAME, f"The ranks wait for rank {late}", "error" if wait >= GRAVE * summary.step_ns else "warning",
        ms(wait), evidence=(*evidence, Evidence("Step", ms(summary.step_ns), "ms")),
        counter_evidence=(Evidence(f"What rank {late} takes longer in backward itself does not show here"),),
        advice=f"Even out the work: see what rank {late} does more than the others before its gradients are "
               "ready (longer samples, slower data, another device).",
        site=facts.site("backward")),))
