"""A tiny training in this process, and the loss of each of its steps."""

from __future__ import annotations

from typing import Any

import pytest

from profiler import catalog
from workloads import _training


class Told:
    """In place of Progress: keeps each loss."""

    losses: list[float]

    def __init__(self, steps: int, samples: int, unit: str) -> None:
        self.steps, self.step = steps, 0
        Told.losses = []

    def update(self, loss: Any) -> bool:
        self.step += 1
        Told.losses.append(loss.item())
        return self.step >= self.steps


def learnt(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> list[float]:
    """The loss of each step of a tiny language model."""
    monkeypatch.setattr(_training, "Progress", Told)
    info = catalog.get("language_model")
    values = {**info.defaults(), "model": "tiny", "batch_size": 2, "context": 16, "steps": 6, "threads": 1,
              **settings}
    assert catalog.check(info, values) == {}
    catalog.load("language_model").run(catalog.make_settings(info.name, values))
    return Told.losses
