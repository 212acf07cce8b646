"""Each sample arrives late, as from a network file system or an object store.

The loader waits 5 ms for each sample at strength 1, and as long again as its
bytes take at 20 MB/s. A wait is no work: workers wait side by side, also where
there are few cores.

Rule input_bound, verdict input_bound, stage data. Remedy: more workers.
Factor on a CPU against the control: 1.3 to 4.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from workloads._faults import EVERY
from workloads._faults._wrapped import Slowed

NAME = "slow_storage"
TITLE = "Slow storage"
VERDICT = "input_bound"
RULE = "input_bound"
STAGE = "data"
REMEDY = ("workers", 4)
FACTOR = (1.3, 4.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1}
FAULTY: dict[str, Any] = {}
LATENCY_S = 0.005
BYTES_S = 20e6


def dataset(dataset: Any, strength: float) -> Any:
    """The same samples, late."""
    return Slowed(dataset, partial(_wait, strength=strength))


def _wait(sample: Any, strength: float) -> None:
    size = sum(part.nbytes for part in sample if hasattr(part, "nbytes"))
    time.sleep(strength * (LATENCY_S + size / BYTES_S))
