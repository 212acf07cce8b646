"""Each sample arrives late, as from a network file system or an object store.

The loader waits 5 ms for each sample at strength 1, and as long again as its
bytes take at 20 MB/s. A wait is no work: workers wait side by side.

Rule input_bound, verdict input_bound, stage data. Remedy: more workers.
Factor on a CPU against the control: 1.2 to 2.5.
"""

from __future__ import annotations

import time
from typing import Any

from workloads._faults import EVERY

NAME = "slow_storage"
TITLE = "Slow storage"
VERDICT = "input_bound"
RULE = "input_bound"
STAGE = "data"
REMEDY = ("workers", 4)
FACTOR = (1.2, 2.5)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL: dict[str, Any] = {}
FAULTY: dict[str, Any] = {}
LATENCY_S = 0.005
BYTES_S = 20e6


class Late:
    """A dataset whose samples come `strength` times the latency and the time of their bytes late."""

    def __init__(self, dataset: Any, strength: float) -> None:
        self.dataset, self.strength = dataset, strength

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        sample = self.dataset[index]
        size = sum(part.nbytes for part in sample if hasattr(part, "nbytes"))
        time.sleep(self.strength * (LATENCY_S + size / BYTES_S))
        return sample


def dataset(dataset: Any, strength: float) -> Any:
    """The same samples, late."""
    return Late(dataset, strength)
