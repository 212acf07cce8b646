"""The device's memory: whether it runs out, and the largest batch that fits."""

import pytest

from profiler.analysis.headroom import headroom
from profiler.analysis.readings import Memory
from profiler.rules.recording import memory_pressure
from tests.rules.recording.gpu_runs import GIB, evidence, finding, gpu_facts, memory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


def test_the_largest_batch_that_fits(path):
    live = {"gpu.util": 0.9, "gpu.mem_used": 45 * GIB, "gpu.mem_reserved": 0}
    found = finding(memory_pressure, gpu_facts(path, torch=memory(), gpu=live))
    # torch may take 139 of 140 GiB: at best (139 - 10) / 30 times 64, at worst the 139 hold 139 * 40/44
    low = int((139 * 40 / 44 - 10) / 30 * 64)
    assert found.severity == "info" and found.cost_ms == 0
    assert found.title == f"Memory has room for a batch of about {low}, now 64"
    assert evidence(found, "Largest batch") == int((139 - 10) / 30 * 64)


def test_without_two_points_the_largest_batch_is_an_upper_bound():
    told = Memory(None, 40 * GIB, 44 * GIB, None, 0, 0, 45 * GIB, 140 * GIB, 0.0, 1.0 * GIB)
    found = headroom(told, 64)
    assert found.at_most and found.high == int(64 * 139 / 40)
    grown = Memory(40 * GIB, 40 * GIB, 44 * GIB, None, 0, 0, 45 * GIB, 140 * GIB, 0.0, 1.0 * GIB)
    assert headroom(grown, 64).at_most
    assert headroom(Memory(None, 1, 1, None, 0, 0, None, None, 0.0, None), 64) is None


def test_a_device_that_is_nearly_full_and_one_that_ran_out(path, tmp_path):
    live = {"gpu.util": 0.9, "gpu.mem_used": 45 * GIB, "gpu.mem_reserved": 0}
    full = finding(memory_pressure, gpu_facts(path, torch=memory(), gpu=live, memory_total=44 * GIB))
    assert full.severity == "warning" and "nearly full" in full.title
    again = memory(**{"torch.alloc_retries": lambda k: k // 4, "torch.ooms": lambda k: int(k > 5)})
    out = finding(memory_pressure, gpu_facts(tmp_path / "b.stepscope", torch=again, gpu=live))
    assert out.severity == "error" and "1 time" in out.title and evidence(out, "Out-of-memory") == 1
    assert evidence(out, "Cached memory given back") >= 2 and out.site is None


def test_where_memory_ran_out_and_for_how_much(path):
    said = {"requested": 3 * GIB, "free": GIB, "total": 140 * GIB, "site": "train.py:8"}
    facts = gpu_facts(path, torch=memory(), lag={"data": 1}, out_of_memory=said)
    found = finding(memory_pressure, facts)
    assert found.title == "Memory ran out 1 time" and found.site == "train.py:8"
    assert evidence(found, "Asked for when") == 3 * GIB and evidence(found, "Free at that time") == GIB


@pytest.mark.parametrize(("torch", "gpu", "word"), [
    (memory(), {"gpu.util": 0.9}, "others hold"), ({}, {"gpu.util": 0.9}, "neither"),
    ({}, {"gpu.util": 0.9, "gpu.mem_used": 1 * GIB}, "peak")])
def test_what_memory_lacks(path, torch, gpu, word):
    assert word in memory_pressure.check(gpu_facts(path, torch=torch, gpu=gpu, lag={"data": 1})).lacks
