"""More threads compute than there are cores.

Beside the loop twice as many threads compute as there are cores (at strength 1), as
in pools that each take the whole machine: the loop's thread has to wait for a core.

Rule threads, verdict host_bound, stage backward (the others grow as well). On a CPU
that is its compute: compute_bound. Remedy: no setting; fewer threads, or other
cores.
Factor on a CPU against the control: 1.5 to 8.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Any

from workloads._faults import EVERY

NAME = "thread_oversubscription"
TITLE = "Too many threads"
VERDICT = "host_bound"
ON_CPU = "compute_bound"
RULE = "threads"
STAGE = "backward"
REMEDY = None
FACTOR = (1.5, 8.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1}
FAULTY: dict[str, Any] = {}
BYTES = 4 << 20  # hashed in one call, some ms in which other threads may run Python


def after_step(state: Any, index: int, strength: float) -> None:
    """Start the threads after the first step; they end with the loop."""
    if index:
        return
    ended = threading.Event()
    state.kept.callback(ended.set)
    for _ in range(max(1, round(2 * (os.cpu_count() or 1) * strength))):
        threading.Thread(target=_compute, args=(ended,), daemon=True).start()


def _compute(ended: threading.Event) -> None:
    data = bytes(BYTES)
    while not ended.is_set():
        hashlib.sha256(data)
