"""What lies in what, and who launched what."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.trace.joined import Joined, last_above, parents
from profiler.trace.model import NONE, Kind
from tests.analysis.trace.build import D, H, call, copy, kernel, op, trace


def with_a_stack(rows: list[tuple[int, int, int]]) -> list[int]:
    """Parents of rows (start, end, lane) by hand."""
    result = [NONE] * len(rows)
    for lane in {r[2] for r in rows}:
        stack: list[int] = []
        for k, (start, _, own) in enumerate(rows):
            if own != lane:
                continue
            while stack and rows[stack[-1]][1] <= start:
                stack.pop()
            if stack:
                result[k] = stack[-1]
            stack.append(k)
    return result


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15), st.integers(0, 2)), max_size=30))
def test_parents_are_those_of_a_stack(drawn: list[tuple[int, int, int]]) -> None:
    rows = sorted(((a, a + n, lane) for a, n, lane in drawn), key=lambda r: (r[0], -r[1]))
    start, end, lane = (np.array([r[k] for r in rows], np.int64) for k in range(3))
    assert parents(start, end, lane.astype(np.int32)).tolist() == with_a_stack(rows)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_last_above(drawn: list[tuple[int, int]]) -> None:
    values, floor = (np.array([d[k] for d in drawn], np.int64) for k in range(2))
    wanted = [max((j for j in range(i) if values[j] > floor[i]), default=NONE) for i in range(len(drawn))]
    assert last_above(values, floor).tolist() == wanted


def test_a_driver_call_in_a_runtime_call_is_one_launch() -> None:
    j = Joined(trace([op("aten::mm", 0, 50), call("cudaLaunchKernel", 10, 20, 5),
                      H(Kind.DRIVER, "cuLaunchKernel", 12, 18, 0, 5), kernel(30, 40, 5)]))
    assert j.trace.names[j.trace.host.name[j.launch[0]]] == "cudaLaunchKernel"
    assert j.kernel_launch.tolist() == [False, True, False]


def test_calls_as_deep_as_there_are_events() -> None:
    rows = [call("cudaLaunchKernel", 0, 200_000 - i) for i in range(200_000)]
    assert not Joined(trace(rows)).outer_call.any()  # all are inside the first


def test_one_launch_owns_all_kernels_of_a_graph() -> None:
    j = Joined(trace([call("cudaGraphLaunch", 0, 10, 3), kernel(12, 20, 3), kernel(21, 30, 3)]))
    assert j.launch.tolist() == [0, 0]


def test_a_call_of_any_name_launches_what_has_its_correlation() -> None:
    j = Joined(trace([call("newApiThatNobodyKnows", 0, 10, 3), kernel(12, 20, 3)]))
    assert j.kernel_launch.tolist() == [True]


def test_activities_without_a_launch_have_none() -> None:
    rows = [call("cudaLaunchKernel", 0, 10, 3), kernel(12, 20, 4), kernel(22, 30, 0), kernel(32, 40)]
    j = Joined(trace(rows))
    assert j.launch.tolist() == [NONE] * 3
    assert Joined(trace([kernel(0, 5, 1)])).launch.tolist() == [NONE]


def test_the_main_device_computes_most() -> None:
    rows = [kernel(0, 10, 1, device=0), kernel(0, 30, 2, device=1),
            kernel(0, 90, 3, device=0, name="ncclDevKernel_AllReduce_Sum"), copy(0, 90, 4)]
    assert Joined(trace(rows)).main_device == 1
    assert Joined(trace([op("aten::mm", 0, 5)])).main_device == NONE


def test_what_is_no_kernel_copy_or_memset_computes() -> None:
    j = Joined(trace([D(Kind.DEVICE_OTHER, "fused", 0, 10, 1)]))
    assert j.compute.tolist() == [True]
