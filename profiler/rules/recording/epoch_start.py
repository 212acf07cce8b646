"""Workers that start anew at every epoch, while the loop waits for the first batch."""

from __future__ import annotations

from profiler.analysis.facts import Facts
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms, plural
from profiler.units import format_time

NAME = "epoch_start"
TITLE = "Epoch starts"
WORTH = 0.05  # of the time of the training loop


def check(facts: Facts) -> Outcome:
    """The run's own first wait is no finding: something has to start once.

    Ruled out below 5 % of the time. Persistent workers too need a moment for an epoch's first batch: a
    decoded batch of 8 images took 28 to 37 ms of 12 steps of 60 ms.
    """
    if facts.summary is None:
        return Outcome(lacks=facts.lacks or "no steady step")
    epochs, whole = facts.summary.epochs, facts.summary.whole_ns
    if not epochs.later:
        first = "" if epochs.first_wait_ns is None else f", which took {format_time(epochs.first_wait_ns)}"
        return Outcome(ruled_out=f"one epoch: no start after the first{first}")
    share = epochs.excess_ns / whole
    if share < WORTH:
        return Outcome(ruled_out=f"{100 * share:.1f} % of the run")
    starts = plural(epochs.later, "epoch start")
    restarted = bool(facts.workers) and facts.loader.get("persistent_workers") is False
    per_epoch = ms(epochs.later_wait_ns)
    gain = whole / (whole - epochs.excess_ns)
    return Outcome((Finding(
        NAME, f"Epoch starts wait {format_time(epochs.later_wait_ns)}", "warning",
        ms(epochs.excess_ns) / facts.summary.total,
        evidence=(Evidence(f"First wait of an epoch, mean of {starts}", per_epoch, "ms"),
                  Evidence("Usual wait", ms(facts.summary.stages["data"]), "ms"),
                  Evidence("Of the training time", share, "share")),
        counter_evidence=(Evidence("Steady steps do not get faster by it: only epochs begin sooner"),),
        remedy=Remedy("persistent_workers", False, True) if restarted else None,
        prediction=Prediction("no_input_wait", gain, 1.0, gain, at_most=True) if restarted else None,
        advice="" if restarted else "Prepare the next epoch's first batches before this one ends.",
        site=facts.site("loader")),))
