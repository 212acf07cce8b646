"""Each batch takes half a gigabyte along to the device that nobody uses.

As of images that are sent whole and cut on the device, or fields that the model
never reads: 512 MB at strength 1, from pinned memory when the batch is pinned.

Rule transfer_bound, verdict transfer_bound, stage h2d. Remedy: copy one batch ahead
(prefetch_to_device), or copy less.
Factor: needs a GPU. On a CPU nothing is copied.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from workloads._faults import EVERY

NAME = "large_copies"
TITLE = "Large copies"
VERDICT = "transfer_bound"
RULE = "transfer_bound"
STAGE = "h2d"
REMEDY = ("prefetch_to_device", True)
FACTOR = None
NEEDS = "cuda"
WORKLOADS = EVERY
CONTROL = {"pin_memory": True}
FAULTY: dict[str, Any] = {}
BYTES = 512_000_000


def batch(batch: Any, index: int, strength: float) -> Any:
    """The batch with one more tensor, which only takes its way."""
    return (*batch, _luggage(int(BYTES * strength), batch[0].is_pinned()))


@cache
def _luggage(size: int, pinned: bool) -> Any:
    import torch

    return torch.zeros(size, dtype=torch.uint8, pin_memory=pinned)
