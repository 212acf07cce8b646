"""The device waits for data: the loop is inside the loader's `__next__`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import loader_queue
from profiler.rules.base import Evidence, Finding, Outcome, Prediction, Remedy, ms
from profiler.rules.trace.evidence import SOURCE, at_most, classes, doubts, severity, site, small, unit
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import Ints

NAME = "input_bound"
TITLE = "Data wait"
SCENARIO = "no_input_wait"
_INLINE = "_SingleProcessDataLoaderIter"  # the loop's own thread makes the batch


def check(facts: TraceFacts) -> Outcome:
    """Ruled out when the wait takes less than 3 % of the step and its removal gives less."""
    if said := small(facts, NAME, SCENARIO):
        return said
    rows = fetches(facts)
    inline = len(rows) > 0 and all(_INLINE in facts.trace.names[c] for c in facts.trace.host.name[rows])
    queue = _Queue.of(facts, rows) if inline else None
    workers = queue.workers if queue else None
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
    against = doubts(facts, SCENARIO)
    if queue:
        evidence.append(Evidence("Making a batch, longest", ms(max(queue.service)), "ms", SOURCE))
        against += (Evidence("A trace tells neither cores nor storage: the low end has all workers on one "
                             "core", source="replay"),)
    return Outcome((Finding(
        NAME, title, severity(facts, NAME, SCENARIO), ms(facts.cost(NAME)), evidence=tuple(evidence),
        counter_evidence=against, remedy=remedy, advice=advice,
        prediction=queue.prediction(facts) if queue else at_most(facts, SCENARIO), site=site(facts, rows)),))


@dataclass(frozen=True)
class _Queue:
    """A loader without workers as the queue that it would be with them; ns a batch."""

    service: list[float]  # what the making of each batch took
    rest: float           # what the loop takes where batches are ready
    workers: int          # that hide the making of batches

    @classmethod
    def of(cls, facts: TraceFacts, rows: Ints) -> _Queue | None:
        """None without steps."""
        if facts.step_ns is None or not len(rows):
            return None
        service = (facts.trace.host.end - facts.trace.host.start)[rows]
        steps = len(facts.windows)
        ready = facts.scenario(SCENARIO)
        rest = facts.step_ns - int(service.sum()) / steps if ready is None else ready.step_ns
        rest = max(rest * steps / len(rows), 1.0)
        times = [float(ns) for ns in service]
        return cls(times, rest, loader_queue.enough(times, rest))

    def prediction(self, facts: TraceFacts) -> Prediction | None:
        """Of the workers; the scenario's own where they hide all. None where nothing is predicted."""
        ideal = facts.scenario(SCENARIO)
        if ideal is None or ideal.speedup <= 1.0:
            return None

        def slower(cores: int | None = None) -> float:
            return max(loader_queue.step(self.service, self.rest, self.workers, cores) / self.rest, 1.0)

        speedup = max(ideal.speedup / slower(), 1.0)
        low = max(min(ideal.low / slower(cores=1), speedup), 1.0)
        return Prediction(SCENARIO, speedup, low, max(ideal.high / slower(), speedup), at_most=True)


def fetches(facts: TraceFacts, every: bool = False) -> Ints:
    """Host rows of the loader's `__next__` on the loop's thread: in counted steps, or all of them."""
    host = facts.trace.host
    wanted = facts.joined.fetch & (host.thread == facts.steps.thread)
    rows = np.flatnonzero(wanted if every else wanted & facts.in_step)
    return rows[~np.isin(facts.joined.parent[rows], rows)]
