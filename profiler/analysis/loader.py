"""What a loop would take with another number of loader workers: the loader as a queue.

Without a trace, from means over the steady steps. A batch takes `service` in one
worker; b workers deliver one every service / b. The loop takes `rest` besides
waiting. All of it needs CPU time, of which the cores give so much and no more. The
step is the longest of the three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MOST_WORKERS = 16
NEAR_BEST = 1.05  # the smallest number of workers within 5 % of the best
IN_WORKER = 1.12  # a batch takes longer in a worker: collating into shared memory, the queue
FETCH_NS = 1_000_000  # what taking a ready batch from the queue costs the loop, at most
FETCH_SHARE = 0.05  # of the batch's service time, where that is less
CPU_BOUND = 0.7  # CPU time over service time from which more workers than cores are of no use
# A loop that no longer sleeps between batches keeps its caches and threads warm; one
# whose cores are shared with workers is slowed by them, the more the fuller they are.
# Other programs on the same cores do so too, as far as they keep them busy.
FASTER, SLOWER, CROWDED, FULL, OTHERS = 0.86, 1.09, 0.6, 0.9, 0.5


@dataclass(frozen=True)
class LoaderModel:
    """Means per step in ns. `cpu`: of a batch in the loader; `other_cpu`: of all else in the target.

    `others`: share of the machine's cores that work of others keeps busy. `alone`: what the loader takes
    for a batch with nobody beside it, by its workers, where that was measured: no loop gets one sooner.
    """

    step: float
    rest: float
    service: float
    cpu: float
    other_cpu: float
    cores: int
    workers: int
    others: float = 0.0
    alone: Mapping[int, float] = field(default_factory=dict)

    def step_with(self, workers: int) -> float:
        """The step time predicted with so many workers (at least 1)."""
        fetch = min(FETCH_NS, FETCH_SHARE * self.service)
        per_batch = self.service * (1.0 if self.workers else IN_WORKER) / workers
        busy = (self.cpu + self.other_cpu) / self.cores
        return max(self.rest + fetch, per_batch, busy, self.ceiling(workers))

    def ceiling(self, workers: int) -> float:
        """The shortest step that the loader allows by what was measured of it alone; 0 without that.

        Fewer workers are no faster, and more are at best as much faster as they are more.
        """
        return max((ns * min(1.0, max(1, measured) / workers) for measured, ns in self.alone.items()),
                   default=0.0)

    def speedup(self, workers: int) -> tuple[float, float, float]:
        """Predicted step time now over then: low, middle, high."""
        then = self.step_with(workers)
        load = (self.cpu + self.other_cpu) / (self.cores * then)
        slower = SLOWER + FULL * max(0.0, load - CROWDED) + OTHERS * max(0.0, self.others - 0.1)
        fastest = max(FASTER * then, self.ceiling(workers))
        return self.step / (slower * then), self.step / then, self.step / fastest

    def harmless(self, workers: int) -> bool:
        """Whether even the pessimistic end is no slower, were the machine ours alone.

        Where compute fills the cores, a worker beside it makes its threads wait for each
        other: measured on two cores, that can cost far more than the wait did.
        """
        return replace(self, others=0.0).speedup(workers)[0] >= 1.0

    def candidates(self) -> list[int]:
        """Numbers worth trying: powers of two and the cores, above the present one.

        A loader that computes gains nothing beyond the cores; one that waits for
        storage may, up to twice as many.
        """
        waits = self.service <= 0 or self.cpu / self.service < CPU_BOUND
        most = min(MOST_WORKERS, self.cores * (2 if waits else 1))
        return sorted({n for n in (1, 2, 4, 8, 16, self.cores) if self.workers < n <= most})

    def best(self) -> int | None:
        """The smallest number within 5 % of the best predicted step. None when no candidate is left."""
        steps = {n: self.step_with(n) for n in self.candidates()}
        if not steps:
            return None
        limit = NEAR_BEST * min(steps.values())
        return min(n for n, step in steps.items() if step <= limit)


def loader_model(*, step: float, rest: float, wait: float, workers: int, wait_cpu: float | None,
                 workers_cores: float | None, target_cores: float | None, thread_cpu: float | None,
                 cores: int, others: float = 0.0,
                 alone: Mapping[int, float] | None = None) -> LoaderModel | None:
    """The model of a loop that would take `rest` of each `step` if batches were ready.

    With no workers a batch's service time is the data wait itself and its CPU time that
    of the loop's thread inside it. With workers that are waited for, all are busy: one
    batch a step between them, and their CPU time is measured (`workers_cores`).
    None where the CPU time is not known.
    """
    if workers == 0:
        if wait_cpu is None:
            return None
        # Intra-op threads of the loader are seen only in the CPU of the whole target.
        everything = target_cores * step if target_cores is not None else (thread_cpu or wait_cpu)
        cpu = min(wait_cpu, wait)
        return LoaderModel(step, rest, wait, cpu, max(0.0, everything - cpu), cores, 0, others,
                           alone or {})
    if workers_cores is None:
        return None
    cpu = workers_cores * step
    everything = max(target_cores * step if target_cores is not None else 0.0, cpu + (thread_cpu or 0.0))
    return LoaderModel(step, rest, workers * step, cpu, everything - cpu, cores, workers, others,
                       alone or {})
