"""Workers take long to begin, and begin anew with every epoch.

Each worker needs half a second at strength 1 before its first sample, as where it
opens an archive or reads an index. Epochs are short here.

Rule epoch_start, stage data. The verdict is that of the steps between the starts:
compute_bound. Remedy: persistent workers.
Factor on a CPU against the control: 1.2 to 3.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

NAME = "epoch_start_stall"
TITLE = "Slow epoch starts"
VERDICT = "compute_bound"
RULE = "epoch_start"
STAGE = "data"
REMEDY = ("persistent_workers", True)
FACTOR = (1.2, 3.0)
NEEDS = "cpu"
WORKLOADS = ("image_classification", "speech")
CONTROL = {"threads": 1, "workers": 2, "persistent_workers": True, "batch_size": 4, "images": 48,
           "image_size": 32, "steps": 48}
FAULTY = {"persistent_workers": False}
SECONDS = 0.5


def pointless(settings: Any) -> str:
    """The loop's own thread begins only once."""
    return "" if settings.workers else "needs 1 worker or more"


def loader(options: dict[str, Any], strength: float) -> dict[str, Any]:
    """The arguments of DataLoader, with workers that are slow to begin."""
    return {**options, "worker_init_fn": partial(_begin, strength * SECONDS)}


def _begin(seconds: float, worker: int) -> None:
    time.sleep(seconds)
