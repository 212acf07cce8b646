"""What other programs took of the machine meanwhile, from the system's and our own accounts of CPU time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil

DISTURBED = 0.25  # cores that others keep busy, from which a run is not alone


@dataclass(frozen=True)
class Accounts:
    """At one time, in seconds: the clock, CPU time of everybody, and that of ours."""

    clock: float
    everybody: float
    ours: float


def accounts() -> Accounts:
    """Now. Ours is this process and those that it, or one that it waited for, has waited for."""
    whole, own = psutil.cpu_times(), psutil.Process().cpu_times()
    idle = whole.idle + getattr(whole, "iowait", 0.0)
    twice = getattr(whole, "guest", 0.0) + getattr(whole, "guest_nice", 0.0)  # in user and nice as well
    return Accounts(time.monotonic(), sum(whole) - idle - twice,
                    own.user + own.system + own.children_user + own.children_system)


def others(before: Accounts, after: Accounts) -> float:
    """Cores that others kept busy on average in between, at least 0. Time stolen from a guest is theirs."""
    seconds = after.clock - before.clock
    if seconds <= 0:
        return 0.0
    return max(0.0, (after.everybody - before.everybody - after.ours + before.ours) / seconds)
