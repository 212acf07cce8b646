"""What is read now and then: precision, shapes of batches, compilation, copies, the allocator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.probe import fakes  # noqa: F401  the probe's own modules
from tests.probe.reading import run


def records(part: Any, now: int = 1 << 60) -> list[list[Any]]:
    return [json.loads(line) for line in part.records(now)]


def test_precision_shapes_and_compilation_of_a_loop(tmp_path: Path) -> None:
    ran = run(tmp_path, "varied.py")
    assert ran.returncode == 0, ran.stderr
    told = ran.only
    assert not told.events("hook_off")
    assert told.of("numerics")[-1][0] == {
        "matmul_precision": "highest", "cudnn_tf32": True, "cudnn_benchmark": False, "autocast": "bfloat16",
        "weights": {"float32": 3 * 4 * 9 + 4 + 4 * 2 + 2}, "convolutions": True}
    assert [n for _, n in told.of("shape")] == [1, 2, 3, 4, 5]
    times = [t for t, _ in told.of("shape")]
    steps = {s["index"]: (s["t0"], s["t1"]) for s in told.training}
    inside = [index for t in times for index, (t0, t1) in steps.items() if t0 <= t < t1]
    # the first batch of a loader comes before it is known to train: its shape is seen when it comes again
    assert inside == [1, 2, 3, 4, 5]
    [last] = told.of("shapes")[-1]
    assert last["distinct"] == 5 and last["batches"] == 78 and last["changes"] == 77
    assert (last["smallest"], last["largest"]) == ([2, 3, 8, 8], [2, 3, 12, 8])
    graphs = told.of("compiled")
    assert graphs[-1][1] == 5 and graphs[-1][2] > graphs[0][2] > 0


def test_shapes_are_counted_and_no_more_than_can_be_kept() -> None:
    from _stepscope_probe import shapes

    part = shapes.Shapes()
    for n in range(1, shapes._MOST + 11):
        for batch in ([torch.zeros(2, n), torch.zeros(2)], {"x": torch.zeros(2, n)}):
            part.see(batch)
    part.see("no tensor")
    told = records(part)
    assert [row[0] for row in told] == ["shape"] * shapes._MOST + ["shapes"]
    said = told[-1][1]
    assert said["batches"] == 2 * (shapes._MOST + 10) and said["changes"] == shapes._MOST + 9
    assert said["distinct"] == shapes._MOST and said["more"] == 20 and said["common_batches"] == 2
    assert records(part) == []


@pytest.mark.parametrize("batch", [torch.zeros(4, 3), (torch.zeros(4, 3), 1),
                                   {"a": 3, "b": torch.zeros(4, 3)},
                                   [[torch.tensor(1.0), torch.zeros(4, 3)]]])
def test_shape_of_a_batch(batch: Any) -> None:
    from _stepscope_probe.shapes import shape_of

    assert shape_of(batch) == (4, 3)


def test_autocast_and_the_newer_settings_of_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe.numerics import Numerics

    part = Numerics()
    part.called()
    [[_, said]] = records(part, 0)
    assert said["autocast"] is None and said["weights"] == {} and said["convolutions"] is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        part.called()
    part.models([torch.nn.Linear(4, 2, dtype=torch.float64)])

    def refuses() -> str:
        raise RuntimeError("mixed")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", refuses)
    monkeypatch.setattr(torch.backends.cuda, "matmul", SimpleNamespace(fp32_precision="tf32"))
    part.at = 11
    assert records(part, 10) == []  # a second has not passed
    [[_, said]] = records(part)
    assert said["autocast"] == "bfloat16" and said["matmul_precision"] == "high"
    assert said["weights"] == {"float64": 10} and said["convolutions"] is False


class Host:
    """A tensor of four bytes an element in the host's memory."""

    def __init__(self, n: int, pinned: bool) -> None:
        self.n, self.pinned = n, pinned

    def numel(self) -> int:
        return self.n

    def element_size(self) -> int:
        return 4

    def is_pinned(self) -> bool:
        return self.pinned


def test_copies_are_summed_and_a_sample_is_asked_for_its_memory() -> None:
    from _stepscope_probe import copies

    part = copies.Copies()
    part.see(Host(100, True), ("cuda",), {"non_blocking": True})
    part.see(Host(300, False), ("cuda",), {})
    assert records(part, 7) == [["copies", 7, 2, 1600, {"pinned": 0.25, "blocking": 0.75}]]
    assert records(part, 8) == []
    for _ in range(copies._LOOKED_AT + 10):
        part.see(Host(100, False), ("cuda",), {})
    assert part._looked == 1600 + 400 * (copies._LOOKED_AT - 2)


def test_memory_of_devices_with_the_allocators_troubles(monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe.cuda import Memory

    stats = {"allocated_bytes": {"all": {"current": 10, "peak": 30}},
             "reserved_bytes": {"all": {"current": 40}},
             "inactive_split_bytes": {"all": {"current": 7}}, "num_alloc_retries": 3, "num_ooms": 1,
             "num_device_alloc": 9, "num_device_free": 2}
    old = {name: value for name, value in stats.items() if "device" not in name}
    devices = [stats, {}, old, {**stats, "reserved_bytes": {"all": {"current": 0}}}]
    monkeypatch.delattr(torch._C, "_cuda_attach_out_of_memory_observer", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(devices))
    monkeypatch.setattr(torch.cuda.memory, "memory_stats_as_nested_dict", lambda i: devices[i])
    assert records(Memory(None), 5) == [
        ["memory", 5, 0, 10, 40, 30, 3, 1, 7, 11], ["memory", 5, 2, 10, 40, 30, 3, 1, 7, None]]


def test_memory_that_runs_out_is_an_event_with_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe.cuda import Memory

    observers: list[Any] = []
    told: list[Any] = []
    monkeypatch.setattr(torch._C, "_cuda_attach_out_of_memory_observer", observers.append, raising=False)
    Memory(SimpleNamespace(event=lambda *said: told.append(said)))
    observers[0](0, 3 << 30, 80 << 30, 1 << 30)
    [(kind, severity, text, data)] = told
    assert (kind, severity) == ("out_of_memory", "error")
    assert text == "GPU 0 ran out of memory: 3.00 GiB asked for, 1.00 of 80.00 GiB free"
    assert data["requested"] == 3 << 30 and data["site"].partition(":")[0].endswith("test_readings.py")
    observers[0](0, None, "x", 1)  # whatever comes, nothing is raised into the allocator
    assert len(told) == 1


def test_a_compiler_without_these_counters_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from _stepscope_probe.compiled import Compiled

    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters={}))  # type: ignore[arg-type]
    assert records(Compiled(), 3) == [["compiled", 3, 0, 0]]
