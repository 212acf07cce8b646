"""Each step reads many numbers of the device into Python, one after the other.

Before the weights change, the norm of each gradient is read by .item(), as code
does that looks for broken gradients or logs them. Each read waits until the
device has done all it was given, and lets it run dry. Strength 1 reads each
gradient once, 2 twice.

Rule sync_bound, verdict sync_bound, stage other. Remedy: no setting; read once
every few steps, from one tensor.
Factor: needs a GPU. On a CPU there is nothing to wait for.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

from workloads._faults import TRAINING

NAME = "sync_every_step"
TITLE = "Reads in every step"
VERDICT = "sync_bound"
RULE = "sync_bound"
STAGE = "other"
REMEDY = None
FACTOR = None
NEEDS = "cuda"
WORKLOADS = TRAINING
CONTROL: dict[str, Any] = {}
FAULTY: dict[str, Any] = {}


def before_step(state: Any, index: int, strength: float) -> None:
    """Read the norms of the gradients."""
    gradients = [p.grad for p in state.model.parameters() if p.grad is not None]
    for gradient in islice(cycle(gradients), round(strength * len(gradients))):
        gradient.norm().item()
