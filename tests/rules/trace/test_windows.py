"""Several profiler windows of one process."""

import pytest

from tests.rules.trace.loops import later, loop, step_ms, told

SECOND = 1_000_000_000


def test_windows_of_one_process_are_pooled():
    slow, fast = loop(wait_us=400), later(loop(9, kernel_us=47, number=30), SECOND)
    found = told(slow, fast)
    assert found["ranks"] is None and found["steps"]["count"] == 5 + 8
    assert found["steps"]["numbers"] == [*range(11, 16), *range(31, 39)]  # without the first of each window
    one, two = told(loop(wait_us=400)), told(loop(9, kernel_us=47))
    for name, ns in found["partition_ms"].items():
        both = (5 * one["partition_ms"][name] + 8 * two["partition_ms"][name]) / 13
        assert ns == pytest.approx(both, abs=1e-9)
    assert found["kernels"]["count"] == 13 * 20
    assert found["what_if"] == two["what_if"] and found["replay"] == two["replay"]
    assert found["critical_path"] == two["critical_path"]
    assert found["queue"][0]["mean"] == two["queue"][0]["mean"]
    assert [t["host_events"] for t in found["traces"]] == [len(slow.trace().host), len(fast.trace().host)]
    assert ("2 profiler windows of the process are put together (5, 8 counted steps); predictions, critical "
            "path, queue and memory over time are of window 2, trace.json") in found["notes"]
    again = told(fast, slow)
    assert {**again, "notes": 0, "traces": 0} == {**found, "notes": 0, "traces": 0}


def test_steps_never_reach_from_one_window_into_the_next():
    windows = [later(loop(4, number=k), k * SECOND) for k in (0, 4)]  # numbered on
    assert told(*windows)["steps"]["numbers"] == [1, 2, 3, 5, 6, 7]
    for line in windows:
        line.events = [e | {"name": e["name"].replace("ProfilerStep#", "step ")} for e in line.events]
        for end in [e["t1"] for e in line.events if e["name"].startswith("step ")]:
            line.annotation("Optimizer.step#SGD.step", end - 4000, end - 3000)
    found = told(*windows)
    assert found["steps"]["rule"] == "optimizer" and found["steps"]["total"] == 6
    assert found["step_ms"]["range"] == [step_ms()] * 2


@pytest.mark.parametrize("other", [loop(number=30), later(loop(rank=1), SECOND)])
def test_what_overlaps_or_is_of_another_rank_is_another_process(other):
    assert len(told(loop(rank=0), other, what_if=False)["ranks"]) == 2


def test_a_window_without_such_steps_is_left_out():
    bare = later(loop(), SECOND)
    bare.events = [e for e in bare.events if "ProfilerStep" not in e["name"]]
    found = told(bare, loop(), what_if=False)
    assert found["steps"]["count"] == 5 and found["ranks"] is None
    assert "1 further profiler window of the process without such steps is left out" in found["notes"]
