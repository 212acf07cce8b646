"""Every tenth step waits for Python's garbage collector.

The program holds 200,000 small objects at strength 1, beside those of its
libraries, and collects in full every tenth step: each object is looked at.

Rule stalls, verdict host_bound, stage other. Remedy: no setting; gc.freeze() after
the start, or collections outside the loop.
Factor on a CPU against the control: 1.3 to 4.
"""

from __future__ import annotations

import gc
from typing import Any

from workloads._faults import EVERY

NAME = "gc_pauses"
TITLE = "Garbage collection"
VERDICT = "host_bound"
RULE = "stalls"
STAGE = "other"
REMEDY = None
FACTOR = (1.3, 4.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1}
FAULTY: dict[str, Any] = {}
OBJECTS = 200_000
EVERY_STEPS = 10


def after_step(state: Any, index: int, strength: float) -> None:
    """Make the objects in the first step; collect in every tenth one."""
    if index == 0:
        objects = [[number] for number in range(int(OBJECTS * strength))]
        state.kept.callback(objects.clear)
    if index % EVERY_STEPS == EVERY_STEPS - 1:
        gc.collect()
