"""Kernels whose grids do not reach all of the GPU: the work of a launch is too small for it.

By launch configurations alone, which tell how many multiprocessors have a block, not how well they
use it. A low occupancy by itself is not blamed: the fastest matrix products keep few warps.
"""

from __future__ import annotations

from profiler.rules.base import Evidence, Finding, Outcome, ms
from profiler.rules.trace.evidence import SOURCE, unit
from profiler.rules.trace.facts import TraceFacts

NAME = "occupancy"
TITLE = "Filling of the GPU"
COMPUTES = 0.4  # share of the window in compute, from which it matters how well that fills the GPU
FILLED = 0.7  # estimated SM efficiency, from which the GPU counts as filled


def check(facts: TraceFacts) -> Outcome:
    """Lacks launch configurations; ruled out where compute is a small part, or its grids fill the GPU."""
    if facts.lacks or not facts.on_device:
        return Outcome(lacks=facts.lacks or "no accelerator in the trace")
    told, share = facts.kernel_summary, facts.shares.of("compute")
    if told.sm_efficiency is None:
        return Outcome(lacks="the trace tells no grids of kernels, or not how many multiprocessors there are")
    if share < COMPUTES:
        return Outcome(ruled_out=f"compute is {100 * share:.0f} % of the {unit(facts)}")
    if told.sm_efficiency >= FILLED:
        return Outcome(ruled_out=f"grids reach {100 * told.sm_efficiency:.0f} % of the multiprocessors")
    steps = max(len(facts.windows), 1)
    evidence = [Evidence("Estimated SM efficiency, by kernel time", told.sm_efficiency, "share", SOURCE),
                Evidence(f"Kernels, sum per {unit(facts)}", ms(told.total_ns / steps), "ms", SOURCE)]
    if told.median_ns is not None:
        evidence.append(Evidence("Median kernel", ms(told.median_ns), "ms", SOURCE))
    if told.occupancy is not None:
        evidence.append(Evidence("Achieved occupancy, estimated", told.occupancy, "share", SOURCE))
    return Outcome((Finding(
        NAME, f"Kernels reach {100 * told.sm_efficiency:.0f} % of the GPU", "info", evidence=tuple(evidence),
        counter_evidence=(Evidence("Kernels beside each other on several streams may fill it together",
                                   source=SOURCE),),
        advice="A larger batch gives each kernel more blocks; where it cannot grow, fuse (torch.compile) or "
               "run several streams. A sweep over the batch size tells what it gives."),))
