"""Batches: their size, and what it costs to take one that is ready."""

from __future__ import annotations

import json
import queue
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probe.fakes import PROBE

assert PROBE.is_dir()
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")


def iterator(ready: bool = False, early: bool = False) -> Any:
    """As torch's own with workers: the next batch came early, or all but one are there, or neither."""
    waiting: queue.Queue[int] = queue.Queue()
    if ready:
        waiting.put(1)
    waiting.put(2)
    return SimpleNamespace(_rcvd_idx=3, _task_info={3: (0, "batch") if early else (0,)}, _data_queue=waiting,
                           _tasks_outstanding=3)


def told(batches: Any, now: int = 1 << 40) -> Any:
    return [json.loads(line)[1] for line in batches.records(now)]


def test_ready_batches_are_told_from_those_that_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe import batches as module

    time = [1000]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: time[0]))
    batches = module.Batches()
    for one, took in ((iterator(), 9000), (iterator(ready=True), 200), (iterator(early=True), 400)):
        batches.asked(one)
        time[0] += took
        batches.got([torch.zeros(4, 8), torch.zeros(4, dtype=torch.int64)])
    (found,) = told(batches)
    assert found == {"asked": 3, "ready": 2, "ready_ns": 300, "tensor_bytes": 160, "array_bytes": 0}


def test_no_workers_and_another_torch() -> None:
    from _stepscope_probe.batches import Batches

    batches = Batches()
    batches.asked(SimpleNamespace())
    batches.asked(SimpleNamespace(_task_info={}))
    batches.got({"x": np.zeros(10, np.float32), "more": (torch.zeros(2), 3, "text")})
    (found,) = told(batches)
    assert found == {"asked": 0, "ready": 0, "ready_ns": 0, "tensor_bytes": 8, "array_bytes": 40}


def test_told_once_a_second_and_only_what_is_new() -> None:
    from _stepscope_probe.batches import Batches

    batches = Batches()
    assert told(batches) == []
    batches.got(torch.zeros(2))
    assert len(told(batches, 5)) == 1
    assert told(batches, 10**10) == []
    batches.got(torch.zeros(2))
    assert told(batches, 6) == [] and len(told(batches, 10**10)) == 1
