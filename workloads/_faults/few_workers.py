"""The loader gets a quarter of the workers that are set.

At strength s they are divided by 1 + 3 s and rounded down; at 0 workers the loop
loads by itself. The samples take their time to arrive (slow_storage) with and
without the fault: enough workers hide that.

Rule input_bound, verdict input_bound, stage data. Remedy: more workers.
Factor on a CPU against the control: 1.2 to 3.
"""

from __future__ import annotations

from typing import Any

from workloads._faults import EVERY

NAME = "few_workers"
TITLE = "Few workers"
VERDICT = "input_bound"
RULE = "input_bound"
STAGE = "data"
REMEDY = ("workers", 8)
FACTOR = (1.2, 3.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1, "workers": 3, "slow_storage": 2.0, "context": 288}
FAULTY: dict[str, Any] = {}


def pointless(settings: Any) -> str:
    """Without workers there are none to take away."""
    return "" if settings.workers else "needs 1 worker or more to take away"


def loader(options: dict[str, Any], strength: float) -> dict[str, Any]:
    """The arguments of DataLoader with fewer workers."""
    return {**options, "num_workers": int(options["num_workers"] / (1 + 3 * strength))}
