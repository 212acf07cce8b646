"""Single steps that take far longer than the others, and step times that spread widely."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.analysis.summary import StepSummary
from profiler.model import STAGES
from profiler.rules.base import Evidence, Finding, Outcome, ms, plural

NAME = "stalls"
TITLE = "Uneven steps"
WORTH = 0.01  # of the steady steps' time
WIDE = 0.5  # (p95 - p5) / median


def check(facts: Facts) -> Outcome:
    """Stalls are rare steps of more than three medians; they are left out of the stage means."""
    summary = facts.summary
    if summary is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if summary.stalls.any():
        total = float(facts.steps.select(facts.steady.mask).wall.sum())
        if summary.stall_ns > 0 and summary.stall_ns / total >= WORTH:
            return Outcome((_stalled(facts, summary, total),))
    spread = summary.spread
    if spread.p5 is None or spread.p95 is None:
        return Outcome(lacks="fewer than 10 steady steps")
    if spread.p95 - spread.p5 < WIDE * spread.median or not spread.median:
        return Outcome(ruled_out=f"5 to 95 %: {ms(spread.p5):.1f} to {ms(spread.p95):.1f} ms")
    return Outcome((Finding(
        NAME, "Step times spread widely", "info", 0.0,
        evidence=(Evidence("5 % of the steps take less than", ms(spread.p5), "ms"),
                  Evidence("Median", ms(spread.median), "ms"), Evidence("Mean", ms(spread.mean), "ms"),
                  Evidence("5 % take more than", ms(spread.p95), "ms")),
        advice="After a burst of batches workers are waited for: there the mean says more than the median. "
               "Else look for other work on the machine." if facts.workers else
        "Batches may differ in size, or other programs share the machine."),))


def _stalled(facts: Facts, summary: StepSummary, total: float) -> Finding:
    steps = facts.steps.select(facts.steady.mask)
    slow, usual = steps.select(summary.stalls), steps.select(~summary.stalls)
    excess = {stage: float(slow.stages[stage].mean() - usual.stages[stage].mean()) for stage in STAGES}
    worst = max(STAGES, key=lambda stage: excess[stage])
    return Finding(
        NAME, f"{plural(len(slow), 'step')} stalled in {worst}", "warning",
        ms(summary.stall_ns) / summary.steady,
        evidence=(Evidence("Steps of more than three medians", len(slow), "count"),
                  Evidence("Longest", ms(float(slow.wall.max())), "ms"),
                  Evidence("Median step", ms(summary.spread.median), "ms"),
                  Evidence("Of the steady steps' time", summary.stall_ns / total, "share"),
                  Evidence(f"More in {worst} than usual, per stalled step", ms(excess[worst]), "ms")),
        advice="Look at what happens at these steps: checkpoints, logging, evaluation, slow files.",
        site=facts.site({"data": "loader", "other": "sync"}.get(worst, worst)))
