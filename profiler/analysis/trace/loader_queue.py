"""A loop whose batches are made by workers: the loader as a queue, with the batches that a trace shows.

Definitions, section 4. Worker k makes every b-th batch, and begins one as soon as it is free and the
loop has taken the batch `AHEAD` * b before it. Batches are taken in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.loader import IN_WORKER, MOST_WORKERS

AHEAD = 2       # batches that the loader lets each worker make ahead, by default
HIDDEN = 1.01   # steps over steps with batches ready, up to which a loader is hidden
LONG = 200      # batches after which the queue has settled, and of which the times are looked at


def step(service: Sequence[float], rest: float, workers: int, cores: int | None = None) -> float:
    """Mean time between batches, ns, of a loop that takes `rest` for each.

    `service`: what the making of each batch took in the loop's own thread, in order, repeated as often as
    need be. `cores`: on which so many workers can work at once; None: every one has its own.
    """
    hands = workers if cores is None else min(workers, cores)
    made = [0.0] * hands
    taken: list[float] = []
    service = service[:LONG]
    rounds = workers * -(-LONG // (workers * len(service)))  # whole turns of the workers
    t = 0.0
    for k in range(2 * rounds * len(service)):
        asked = taken[k - AHEAD * workers] if k >= AHEAD * workers else 0.0
        ready = max(asked, made[k % hands]) + IN_WORKER * service[k % len(service)]
        made[k % hands] = ready
        t = max(t + rest, ready)
        taken.append(t)
    half = rounds * len(service)
    return (taken[-1] - taken[half - 1]) / half


def enough(service: Sequence[float], rest: float) -> int:
    """As many workers as hide the loader, and one to spare; at most `MOST_WORKERS`."""
    for workers in range(1, MOST_WORKERS):
        if step(service, rest, workers) <= HIDDEN * rest:
            return workers + 1
    return MOST_WORKERS
