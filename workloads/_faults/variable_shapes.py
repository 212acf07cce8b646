"""Each batch has another shape.

Images and texts are cut to a size between a half and the whole at strength 1 (a
quarter at 1.5), another one for each batch. What is prepared for a shape is
prepared anew: cuDNN's search of convolutions, memory, compiled code, graphs.

Rule shapes, verdict host_bound, stage forward. Remedy: static shapes (fill up to
one size).
Factor: needs a GPU. On a CPU smaller batches are only faster.
"""

from __future__ import annotations

import random
from typing import Any

NAME = "variable_shapes"
TITLE = "Variable shapes"
VERDICT = "host_bound"
RULE = "shapes"
STAGE = "forward"
REMEDY = ("static_shapes", True)
FACTOR = None
NEEDS = "cuda"
WORKLOADS = ("image_classification", "language_model", "image_inference")
CONTROL = {"cudnn_benchmark": True}
FAULTY: dict[str, Any] = {}


def batch(batch: Any, index: int, strength: float) -> Any:
    """Images [n, c, h, w] cut in both sides, sequences [n, t] in length; labels [n] as they are."""
    share = random.Random(index).uniform(max(0.25, 1 - 0.5 * strength), 1)
    return tuple(_cut(part, share) if hasattr(part, "dim") else part for part in batch)


def _cut(part: Any, share: float) -> Any:
    if part.dim() == 4:
        return part[..., :max(32, int(share * part.shape[2])), :max(32, int(share * part.shape[3]))]
    return part[:, :max(1, int(share * part.shape[1]))] if part.dim() == 2 else part
