"""A dataset whose samples pass through something slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Slowed:
    """The samples of `dataset`, each handed to `slow(sample)` before it goes on."""

    def __init__(self, dataset: Any, slow: Callable[[Any], Any]) -> None:
        self.dataset, self.slow = dataset, slow

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        sample = self.dataset[index]
        self.slow(sample)
        return sample
