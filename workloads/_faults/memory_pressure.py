"""Nearly all memory of the GPU is taken, while the batches differ in shape.

After 20 steps the rest of the GPU is filled up to a quarter (at strength 1; an
eighth at 2) above the most that a step has needed. The allocator's blocks then
rarely fit the next shape: it has to give them back and fetch others, and each
time waits for the device.

Rule allocator_bound, verdict allocator_bound, stage forward. Remedy: static shapes.
Factor: needs a GPU. On a CPU it would be the memory of everybody else.
"""

from __future__ import annotations

from typing import Any

NAME = "memory_pressure"
TITLE = "Memory pressure"
VERDICT = "allocator_bound"
RULE = "allocator_bound"
STAGE = "forward"
REMEDY = ("static_shapes", True)
FACTOR = None
NEEDS = "cuda"
WORKLOADS = ("image_classification", "language_model")
CONTROL = {"variable_shapes": 1.0}
FAULTY: dict[str, Any] = {}
AT_STEP = 20


def after_step(state: Any, index: int, strength: float) -> None:
    """Fill the memory once it is known what a step needs."""
    if index != AT_STEP:
        return
    import torch

    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(state.device)
    needed = torch.cuda.max_memory_allocated(state.device) * (1 + 0.25 / strength)
    room = int(needed - torch.cuda.memory_reserved(state.device))
    if free > room:
        ballast = torch.empty(free - room, dtype=torch.uint8, device=state.device)
        state.kept.callback(ballast.untyped_storage().resize_, 0)
