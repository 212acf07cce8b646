"""How long the ranks of one job wait for each other, from their own stages.

Ranks that average gradients make their steps together: one that comes late with its
gradients holds the others up, in their backward. So what a rank's backward takes above
the shortest one is its wait. It is a lower bound: a rank that is late because its
backward itself is longer shows less.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.summary import StepSummary

ALIKE = 0.1  # of the longest step: how far step times of ranks that wait for each other may differ


def waits(ranks: Sequence[StepSummary], on_device: bool) -> list[float] | None:
    """ns a step that each rank waits for the latest one, 0 for that one.

    On a device by the device's own times: there the host goes on while a collective waits. None
    below two ranks, where their steps differ in length, or where a backward was not measured.
    """
    steps = [rank.step_ns for rank in ranks]
    if len(ranks) < 2 or max(steps) - min(steps) > ALIKE * max(steps):
        return None
    times = [(rank.device if on_device else rank.stages).get("backward", 0.0) for rank in ranks]
    if not all(times):
        return None
    return [time - min(times) for time in times]
