"""Evaluation between training steps, where it takes a good part of the run."""

from __future__ import annotations

import numpy as np

from profiler.analysis.facts import Facts
from profiler.model import STEP_EVALUATION, STEP_PARTIAL
from profiler.rules.base import Evidence, Finding, Outcome, ms, plural

NAME = "evaluation"
TITLE = "Evaluation"
WORTH = 0.05  # of the time from the first training step to the last step of all


def check(facts: Facts) -> Outcome:
    """A note from 5 % of the time on: training may want it. Lacks training steps in a run of inference."""
    steps = facts.steps.select(facts.steps.flags & STEP_PARTIAL == 0)
    if facts.summary is None or facts.lacks or not steps.training.any():
        return Outcome(lacks=facts.lacks or "no training step")
    begin = steps.t0_ns[np.argmax(steps.training)]
    inside = (steps.flags & STEP_EVALUATION != 0) & (steps.t0_ns >= begin)
    taken = float(steps.wall[inside].sum())
    share = taken / float(steps.t1_ns[-1] - begin) if steps.t1_ns[-1] > begin else 0.0
    if share < WORTH:
        return Outcome(ruled_out=f"{100 * share:.1f} % of the time")
    # A phase begins where the step before was none of evaluation.
    phases = int((inside & ~np.concatenate([[False], inside[:-1]])).sum())
    per_step = ms(taken) / max(1, facts.summary.total)
    return Outcome((Finding(
        NAME, f"Evaluation takes {100 * share:.0f} % of the time", "info", per_step,
        evidence=(Evidence(f"Evaluation in {plural(phases, 'phase')}, mean", ms(taken) / phases, "ms"),
                  Evidence("Its steps", int(inside.sum()), "count"),
                  Evidence("Of the time since the first training step", share, "share"),
                  Evidence("For each training step", per_step, "ms")),
        counter_evidence=(Evidence("Training steps do not get faster without it"),),
        advice="Evaluate less often or on fewer samples, in larger batches, under torch.inference_mode()."),))
