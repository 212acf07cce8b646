"""Each sample takes long to decode, as from a heavily compressed container.

The loader unpacks 0.75 MB of compressed bytes for each sample at strength 1,
which is 5 to 15 ms of work. Workers share it as far as there are cores.

Rule input_bound, verdict input_bound, stage data. Remedy: more workers, up to the
number of cores.
Factor on a CPU against the control: 1.3 to 4.
"""

from __future__ import annotations

import random
import zlib
from functools import partial
from typing import Any

from workloads._faults import EVERY
from workloads._faults._wrapped import Slowed

NAME = "slow_decode"
TITLE = "Slow decoding"
VERDICT = "input_bound"
RULE = "input_bound"
STAGE = "data"
REMEDY = ("workers", 2)
FACTOR = (1.3, 4.0)
NEEDS = "cpu"
WORKLOADS = EVERY
CONTROL = {"threads": 1}
FAULTY: dict[str, Any] = {}
BLOCKS = 10  # of 75 kB, unpacked 128 kB, for each sample


def dataset(dataset: Any, strength: float) -> Any:
    """The same samples, each after the unpacking of many bytes."""
    block = zlib.compress(random.Random(0).randbytes(65536).hex().encode(), 1)
    return Slowed(dataset, partial(_unpack, block=block, times=max(1, round(BLOCKS * strength))))


def _unpack(sample: Any, block: bytes, times: int) -> None:
    for _ in range(times):
        zlib.decompress(block)
