"""How long the loop's thread waits for a core, and who has the cores meanwhile.

Without others each of W threads that want a core has one for cores / W of that time: so
much of the loop's wait is of the target's own making, where W is at least half as many
again as the cores. Fewer are the usual life of a program with loader workers, ranks and
helper threads, which fill the cores and no more. The rest is that of other programs, where
they keep at least a tenth of the cores busy; else it is nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MANY = 1.5  # threads that want a core for each core, from which the target crowds itself
BUSY = 0.1  # share of the cores that others keep busy, from which a wait is put down to them


@dataclass(frozen=True)
class Crowding:
    """Means over the steady steps: shares of the loop's time, and numbers of threads or cores.

    `waiting` is all the time in which the loop's thread could run and had no core, `own` and `others`
    the parts of it that the target's threads and other programs cause. `wanted`: threads of the target
    that run or wait for a core; at least that many where `counted` is false. `busy`: cores that others
    keep busy, of those that the target may use; None where it was not measured.
    """

    waiting: float
    own: float
    others: float
    wanted: float
    counted: bool
    busy: float | None


def crowding(live: Mapping[str, float], thread_cpu: float, cores: int, machine_cores: int) -> Crowding | None:
    """None where waiting or the target's CPU was not measured.

    `live`: means by metric; `thread_cpu`: share of the loop's time in which its thread runs.
    """
    waiting, running = live.get("loop.waiting"), live.get("target.cpu")
    if waiting is None or running is None:
        return None
    waits = live.get("target.waiting")
    wanted = running + (waiting if waits is None else max(waits, waiting))
    busy = None
    if "host.cpu" in live:  # others have no more of our cores than we leave
        busy = min(max(0.0, live["host.cpu"] * machine_cores - running), max(0.0, cores - running))
    own = min(waiting, (1.0 - cores / wanted) * (waiting + thread_cpu)) if wanted >= MANY * cores else 0.0
    others = waiting - own if busy is not None and busy >= BUSY * cores else 0.0
    return Crowding(waiting, own, others, wanted, waits is not None, busy)
