"""The device waits for data: the loop is inside the loader's `__next__`."""

from __future__ import annotations

import math

import numpy as np

from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms
from profiler.rules.trace.evidence import SOURCE, at_most, classes, doubts, severity, site, small, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.trace import names
from profiler.trace.model import Ints

NAME = "input_bound"
TITLE = "Data wait"
SCENARIO = "no_input_wait"
_INLINE = "_SingleProcessDataLoaderIter"  # the loop's own thread makes the batch
MOST = 16  # workers that are advised


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when the wait takes less than 3 % of the step and its removal gives less."""
    if said := small(facts, NAME, SCENARIO):
        return said
    rows = fetches(facts)
    inline = len(rows) > 0 and all(_INLINE in facts.trace.names[c] for c in facts.trace.host.name[rows])
    workers = _workers(facts, rows) if inline else None
    remedy = Remedy("num_workers", 0, workers) if workers else None
    title = f"Data wait: workers 0 \u2192 {workers}" if remedy else "The device waits for data"
    advice = "" if remedy else ("Make batches cheaper or earlier: more loader workers, a longer prefetch, "
                                "decoded or cached samples, faster storage.")
    evidence = [*classes(facts, "input_wait")]
    if len(rows):
        time = facts.trace.host.end[rows] - facts.trace.host.start[rows]
        evidence.append(Evidence(f"Loop inside the loader, mean per {unit(facts)}",
                                 ms(int(time.sum()) / max(len(facts.windows), 1)), "ms", SOURCE))
        evidence.append(Evidence("Batches are made by " + ("the loop's own thread (no workers)" if inline
                                                           else "loader workers"), source=SOURCE))
    return Outcome((Finding(
        NAME, title, severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)), evidence=tuple(evidence),
        counter_evidence=doubts(facts, SCENARIO), remedy=remedy, advice=advice,
        prediction=_prediction(facts), site=site(facts, rows)),))


def _prediction(facts: TraceFacts) -> Prediction | None:
    """A trace does not tell how many cores there are and what storage delivers: an upper bound."""
    return at_most(facts, SCENARIO)


def fetches(facts: TraceFacts, every: bool = False) -> Ints:
    """Host rows of the loader's `__next__` on the loop's thread: in counted steps, or all of them."""
    host = facts.trace.host
    loader = facts.joined.host_names(names.is_loader).astype(bool)
    wanted = loader & (host.thread == facts.steps.thread)
    return np.flatnonzero(wanted if every else wanted & facts.in_step)


def _workers(facts: TraceFacts, rows: Ints) -> int | None:
    """As many as hide the making of a batch behind the rest of the step; None without steps."""
    host = facts.trace.host
    if facts.step_ns is None or not len(rows):
        return None
    wait = int((host.end[rows] - host.start[rows]).sum()) / len(facts.windows)
    rest = max(facts.step_ns - wait, 1.0)
    return min(MOST, max(1, math.ceil(wait / rest)))
