"""Workers that keep up on average but are late now and then: more batches ahead would hide it."""

from __future__ import annotations

import numpy as np

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms
from profiler.rules.decision import GAIN
from profiler.rules.recording.input_cause import handed_over

NAME = "prefetch"
TITLE = "Uneven loader"
SHORT_NS = 1_000_000  # a shorter wait is the fetch itself
MOST = 8


def check(facts: Facts) -> Outcome:
    """Lacks steady steps; ruled out where the step without its wait is less than 5 % shorter.

    Starved workers are late in every round of theirs; then prefetching cannot help.
    """
    summary, shares = facts.summary, facts.estimate
    if summary is None or shares is None or facts.lacks:
        return Outcome(lacks=facts.lacks or "no steady step")
    if not facts.workers:
        return Outcome(ruled_out="no loader workers")
    late = summary.waits > max(SHORT_NS, 0.1 * summary.spread.median)
    rate = float(np.mean(late))
    if handed_over(facts):
        return Outcome(ruled_out="batches are ready when they are asked for")
    if shares.gain("input") < GAIN or rate >= 0.5 / facts.workers:
        return Outcome(ruled_out=f"{100 * rate:.0f} % of the steps wait")
    ahead = facts.loader.get("prefetch_factor")
    gain = shares.gain("input")
    more = min(MOST, 2 * ahead) if isinstance(ahead, int) and ahead < MOST else None
    return Outcome((Finding(
        NAME, f"Uneven batches: prefetch {ahead} \u2192 {more}" if more else "Uneven batches", "warning",
        ms(shares.input),
        evidence=(Evidence("Steps that wait", rate, "share"),
                  Evidence("Their wait", ms(float(summary.waits[late].mean())) if late.any() else 0.0, "ms"),
                  Evidence("Loader workers", facts.workers, "count")),
        counter_evidence=(Evidence("Batches that are slow in a row use up any number made ahead"),),
        remedy=Remedy("prefetch_factor", ahead, more) if more else None,
        prediction=Prediction("no_input_wait", gain, 1.0, gain, at_most=True) if more else None,
        advice="" if more else "Make samples of like cost, or sort out the slow ones.",
        site=facts.site("loader")),))
