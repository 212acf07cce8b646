"""Memory is given back to the system in every step and fetched anew.

On a GPU the allocator's cache is emptied after each step, and 8 blocks (at
strength 1) are fetched and given back one by one: each call waits for the device.
On a CPU a block of 34 MB is fetched from the system and filled, for each full unit
of strength.

Rule allocator_bound, verdict allocator_bound, stage other. On a CPU it is host
work: host_bound. Remedy: no setting; do not empty the cache. On Linux the C library
keeps the block when it is told to, by a variable that the finding names.
Factor on a CPU against the control: 1.3 to 4.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from workloads._faults import EVERY

NAME = "allocator_churn"
TITLE = "Allocator churn"
VERDICT = "allocator_bound"
ON_CPU = "host_bound"
RULE = "allocator_bound"
STAGE = "other"
REMEDY = None
FACTOR = (1.3, 4.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1}
FAULTY: dict[str, Any] = {}
BYTES = 34 << 20  # more than the largest block that the C library keeps for itself


def after_step(state: Any, index: int, strength: float) -> None:
    """Fetch memory and give it back."""
    import torch

    on_gpu = state.device.type == "cuda"
    for _ in range(round(8 * strength) or 1 if on_gpu else ceil(strength)):
        torch.empty(BYTES, dtype=torch.uint8, device=state.device).fill_(1)
        if on_gpu:
            torch.cuda.empty_cache()
