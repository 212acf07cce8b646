"""Batches go to the device from pageable memory, though pinned memory is set.

The loader does not pin, at any strength above 0. A copy from pageable memory is
first staged by the CPU, and the loop waits for it.

Rule transfer_bound, verdict transfer_bound, stage h2d. Remedy: pinned memory (what
an experiment sets for the loader goes before this fault).
Factor: needs a GPU. On a CPU nothing is copied.
"""

from __future__ import annotations

from typing import Any

from workloads._faults import EVERY

NAME = "pageable_copies"
TITLE = "Pageable copies"
VERDICT = "transfer_bound"
RULE = "transfer_bound"
STAGE = "h2d"
REMEDY = ("pin_memory", True)
FACTOR = None
NEEDS = "cuda"
WORKLOADS = EVERY
CONTROL = {"pin_memory": True, "workers": 4}
FAULTY: dict[str, Any] = {}


def pointless(settings: Any) -> str:
    """Without pinned memory every copy is pageable."""
    return "" if settings.pin_memory else "needs pin_memory: without it copies are pageable anyway"


def loader(options: dict[str, Any], strength: float) -> dict[str, Any]:
    """The arguments of DataLoader without pinning."""
    return {**options, "pin_memory": False}
