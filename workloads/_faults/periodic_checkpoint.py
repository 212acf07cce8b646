"""The loop saves a checkpoint every few steps and waits for it.

Every fifth step writes model and optimizer, at strength 1 to three files, as the
last, the best and the numbered one.

Rule stalls, verdict host_bound, stage other. Remedy: no setting; save less often, or
in a thread from a copy.
Factor on a CPU against the control: 1.2 to 4.
"""

from __future__ import annotations

import tempfile
from typing import Any

from workloads._faults import TRAINING

NAME = "periodic_checkpoint"
TITLE = "Checkpoints"
VERDICT = "host_bound"
RULE = "stalls"
STAGE = "other"
REMEDY = None
FACTOR = (1.2, 4.0)
NEEDS = "cpu"
WORKLOADS = TRAINING
CONTROL = {"threads": 1, "model": "small", "batch_size": 1, "context": 16, "steps": 30}
FAULTY: dict[str, Any] = {}
EVERY_STEPS, FILES = 5, 3


def after_step(state: Any, index: int, strength: float) -> None:
    """Save in every fifth step."""
    if index % EVERY_STEPS < EVERY_STEPS - 1:
        return
    import torch

    for _ in range(max(1, round(FILES * strength))):
        with tempfile.TemporaryFile() as file:
            torch.save({"model": state.model.state_dict(), "optimizer": state.optimizer.state_dict()}, file)
