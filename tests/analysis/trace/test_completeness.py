"""Launches against kernels: T09 and T15 of the cases, with their healthy counterparts."""

from __future__ import annotations

from profiler.analysis.trace import steps
from profiler.analysis.trace.breakdown import completeness
from profiler.analysis.trace.breakdown.completeness import Completeness
from profiler.analysis.trace.breakdown.partition import partition
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import NONE
from tests.analysis.trace.build import D, H, S, call, kernel, op, step, trace


def check(*rows: H | D | S) -> Completeness:
    j = Joined(trace(rows))
    return completeness.check(j, steps.find(j))


def launches(n: int, kernels: range, first: int = 0) -> list[H | D]:
    """`n` launches 10 ns apart, and kernels of those whose number is in `kernels`."""
    rows: list[H | D] = []
    for k in range(n):
        t0 = first + 10 * k
        rows.append(call("cudaLaunchKernel", t0, t0 + 2, first + k + 1))
        if k in kernels:
            rows.append(kernel(t0 + 3, t0 + 9, first + k + 1))
    return rows


def test_kernels_of_all_launches_are_there() -> None:
    found = check(step(1, 0, 100), *launches(10, range(10)))
    assert found.complete
    assert (found.launches.tolist(), found.missing.tolist(), found.unlaunched) == ([10], [0], 0)
    assert found.notes == ()


def test_kernels_for_the_last_launches_only() -> None:
    """Ten launches, kernels for 6 to 10: the step is incomplete, the next one is not."""
    found = check(step(1, 0, 100), step(2, 100, 200), *launches(10, range(5, 10)),
                  *launches(10, range(10), first=100))
    assert found.incomplete.tolist() == [True, False]
    assert found.missing.tolist() == [5, 0]
    assert found.notes == ("GPU data incomplete: in 1 of 2 steps more than 1 % of the launches lack their "
                           "kernels (5 of 20)",)


def test_one_percent_may_be_missing() -> None:
    assert check(step(1, 0, 1000), *launches(100, range(99))).complete
    assert not check(step(1, 0, 1000), *launches(100, range(98))).complete


def test_no_activity_of_a_device_was_captured() -> None:
    """The profiler was not permitted to: launches, and nothing of a device. It is never idle then."""
    rows = [step(1, 0, 100), op("aten::mm", 0, 50), *launches(10, range(0))]
    found = check(*rows)
    assert not found.complete
    assert found.notes == ("GPU activity not captured: 10 launches and no activity of a device",)
    j = Joined(trace(rows))
    assert partition(j, steps.find(j)).device == NONE


def test_where_nothing_was_captured_no_step_is_complete() -> None:
    """Nor the one that launches nothing: the CPU is not the device of a trace with launches."""
    found = check(step(1, 0, 100), step(2, 100, 200), step(3, 200, 300), *launches(5, range(0)),
                  op("aten::mm", 110, 190), *launches(5, range(0), first=200))
    assert found.incomplete.tolist() == [True, True, True]
    outside = check(step(1, 0, 100), op("aten::mm", 0, 50), *launches(5, range(0), first=200))
    assert outside.incomplete.tolist() == [True]
    assert "5 launches" in outside.notes[0]


def test_a_trace_of_the_cpu_alone_lacks_nothing() -> None:
    found = check(step(1, 0, 100), op("aten::mm", 0, 50))
    assert found.complete
    assert found.notes == ()


def test_launches_into_a_graph_that_is_recorded_start_nothing() -> None:
    recorded = [call("cudaStreamBeginCapture", 0, 1), *launches(5, range(0), first=2),
                call("cudaStreamEndCapture", 55, 56)]
    graph = [call("cudaGraphLaunch", 60, 65, 99), kernel(70, 75, 99)]
    found = check(step(1, 0, 100), *recorded, *graph)
    assert (found.launches.tolist(), found.missing.tolist()) == ([1], [0])
    assert not check(step(1, 0, 100), *launches(5, range(0), first=2), *graph).complete


def test_a_callback_of_the_host_is_no_launch() -> None:
    callback = call("cudaLaunchHostFunc", 0, 5, 4)
    assert check(step(1, 0, 100), callback, *launches(5, range(5), first=10)).complete


def test_activities_without_a_launch_are_counted() -> None:
    assert check(step(1, 0, 100), *launches(5, range(5)), kernel(70, 80, 999)).unlaunched == 1
