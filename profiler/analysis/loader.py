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
PIPE = 1.0  # ns for a byte of an array that comes through a pipe: 0.6 at best, 1.4 of CPU time
SENT = 1.5  # ns of a worker's CPU time to send it
FETCH_SHARE = 0.05  # of the batch's service time, where that is less
CPU_BOUND = 0.7  # share of work in a batch's time from which more workers than cores are of no use
WAITING = 0.3  # up to which the loader is said to wait
LEAST_WORK = 0.01
READY = 0.8  # share of the fetches from which batches are said to be ready
# A loop that no longer sleeps between batches keeps its caches and threads warm; one
# whose cores are shared with workers is slowed by them, the more the fuller they are.
# Other programs on the same cores do so too, as far as they keep them busy.
FASTER, SLOWER, CROWDED, FULL, OTHERS = 0.86, 1.09, 0.6, 0.9, 0.5


@dataclass(frozen=True)
class LoaderModel:
    """Means per step in ns. `cpu`: of a batch in the loader; `other_cpu`: of all else in the target.

    `work`: share of a batch's time in which whoever makes it works, or waits for a core; the rest it waits
    for something else. `handed`: batches are ready when they are asked for; the wait is what it takes to
    hand them from process to process. `array_bytes`: of a batch, in arrays that are no tensors. `others`:
    share of the machine's cores that work of others keeps busy. `alone`: what the loader takes for a batch
    with nobody beside it, by its workers, where that was measured: no loop gets one sooner.
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
    work: float = 1.0
    handed: bool = False
    array_bytes: int = 0

    def step_with(self, workers: int) -> float:
        """The step time predicted with so many workers. With none the loop does the work of one itself."""
        if not workers:
            return max(self.rest + self.service / IN_WORKER, self.ceiling(0))
        fetch = min(FETCH_NS, FETCH_SHARE * self.service) + PIPE * self.array_bytes
        per_batch = self.service * (1.0 if self.workers else IN_WORKER) / workers
        busy = (self.cpu + self.other_cpu) / self.cores
        return max(self.rest + fetch, per_batch, busy, self.ceiling(workers))

    def ceiling(self, workers: int) -> float:
        """The shortest step that the loader allows by what was measured of it alone; 0 without that.

        Fewer workers are no faster, and more are at best as much faster as they are more.
        """
        return max((ns * min(1.0, max(1, measured) / max(1, workers)) for measured, ns in self.alone.items()),
                   default=0.0)

    def speedup(self, workers: int) -> tuple[float, float, float]:
        """Predicted step time now over then: low, middle, high."""
        then = self.step_with(workers)
        load = ((self.cpu if workers else self.service) + self.other_cpu) / (self.cores * then)
        slower = SLOWER + FULL * max(0.0, load - CROWDED) + OTHERS * max(0.0, self.others - 0.1)
        fastest = max(FASTER * then, self.ceiling(workers))
        return self.step / (slower * then), self.step / then, self.step / fastest

    def harmless(self, workers: int) -> bool:
        """Whether even the pessimistic end is no slower, were the machine ours alone.

        Where compute fills the cores, a worker beside it makes its threads wait for each
        other: measured on two cores, that can cost far more than the wait did.
        """
        return replace(self, others=0.0).speedup(workers)[0] >= 1.0

    @property
    def computes(self) -> bool:
        """Whether a batch is mostly work: then no more workers help than there are cores."""
        return self.work >= CPU_BOUND

    def candidates(self) -> list[int]:
        """Numbers worth trying: powers of two and the cores, above the present one.

        A loader that computes gains nothing beyond the cores. One that waits for storage may: as many as
        the cores have work for, though at first no more than twice the cores, from there on twice as many,
        up to four times the cores. Where batches are ready and what costs is to take them over, only none.
        """
        if self.handed:
            return [0]
        most = self.cores
        if not self.computes:
            further = min(4 * self.cores, max(2 * self.cores, 2 * self.workers))
            most = int(min(further, self.cores / max(self.work, LEAST_WORK)))
        most = min(MOST_WORKERS, most)
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
                 cores: int, others: float = 0.0, alone: Mapping[int, float] | None = None,
                 wait_crowded: float = 0.0, workers_waiting: float = 0.0,
                 handed: bool = False, array_bytes: int = 0) -> LoaderModel | None:
    """The model of a loop that would take `rest` of each `step` if batches were ready.

    With no workers a batch's service time is the data wait itself and its CPU time that
    of the loop's thread inside it; in `wait_crowded` of it the thread had no core. With
    workers that are waited for, all are busy: one batch a step between them, and their
    CPU time is measured (`workers_cores`), as are the threads of theirs that wait for a
    core (`workers_waiting`). Where batches are ready (`handed`) workers rest in between,
    and a batch takes what they work for it, without the sending of arrays. Workers that never
    rest are what is waited for, even where a batch lies ready: they hand it over in between.
    None where the CPU time is not known.
    """
    if workers == 0:
        if wait_cpu is None:
            return None
        # Intra-op threads of the loader are seen only in the CPU of the whole target.
        everything = target_cores * step if target_cores is not None else (thread_cpu or wait_cpu)
        cpu = min(wait_cpu, wait)
        return LoaderModel(step, rest, wait, cpu, max(0.0, everything - cpu), cores, 0, others,
                           alone or {}, min(1.0, (cpu + wait_crowded) / wait) if wait else 1.0,
                           array_bytes=array_bytes)
    if workers_cores is None:
        return None
    cpu = workers_cores * step
    everything = max(target_cores * step if target_cores is not None else 0.0, cpu + (thread_cpu or 0.0))
    work = min(1.0, (workers_cores + workers_waiting) / workers)
    handed = handed and work < CPU_BOUND
    service = max(0.0, cpu - SENT * array_bytes) if handed else workers * step
    return LoaderModel(step, rest, service, cpu, everything - cpu, cores, workers,
                       others, alone or {}, work, handed, array_bytes)
