"""Steady step time, and whose windows the partition is of."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steady import Steady
from profiler.trace.model import NONE
from tests.analysis.trace.build import D, H, call, kernel, step, trace


def ahead(numbers: list[int], host: int, device: int) -> list[H | D]:
    """Steps of `host` ns that launch one kernel of `device` ns each, and never wait for it."""
    rows: list[H | D] = []
    free = 0
    for k, number in enumerate(numbers):
        t0 = k * host
        free = max(free, t0 + 10) + device
        rows += [step(number, t0, t0 + host), call("cudaLaunchKernel", t0 + 5, t0 + 8, k + 1),
                 kernel(free - device, free, k + 1)]
    return rows


def of(rows: list[H | D], device: int | None = None) -> Steady:
    j = Joined(trace(rows))
    return steady.steady(j, steps.find(j), device)


def test_host_windows_where_the_host_sets_the_pace() -> None:
    y = of(ahead([1, 2, 3, 4, 5], 1000, 500))
    assert (y.kind, y.step_ns, y.host_ns, y.device_ns) == (steady.HOST, 1000, 1000, 1000)
    assert y.windows.tolist() == [[1000 * k, 1000 * k + 1000] for k in range(5)]
    assert y.counted.tolist() == [False, True, True, True, True]


@pytest.mark.parametrize(("device", "kind"), [(1015, steady.HOST), (1025, steady.DEVICE)])
def test_device_windows_where_its_steps_are_two_percent_longer(device: int, kind: str) -> None:
    y = of(ahead([1, 2, 3, 4, 5], 1000, device))
    assert y.kind == kind
    assert y.step_ns == (device if kind == steady.DEVICE else 1000)


def test_device_windows_lie_between_last_activities() -> None:
    y = of(ahead([1, 2, 3, 4, 5], 1000, 3000))
    assert y.step_ns == y.mean_ns == 3000
    assert y.lengths.tolist() == [0, 3000, 3000, 3000, 3000], "the first one has no predecessor"
    assert y.windows[1].tolist() == [3010, 6010]
    assert not y.counted[0]


def test_device_windows_do_not_span_a_gap_in_the_numbers() -> None:
    y = of(ahead([1, 2, 3, 7, 8, 9], 1000, 3000))
    assert y.lengths.tolist() == [0, 3000, 3000, 0, 3000, 3000]
    assert y.counted.tolist() == [False, True, True, False, True, True]


def test_a_step_that_ends_before_the_one_before_it_adds_nothing() -> None:
    rows = [*ahead([1, 2, 3, 4], 100, 300),
            call("cudaLaunchKernel", 120, 125, 50), kernel(130, 5000, 50, stream=20)]
    y = of(rows)
    assert (y.lengths >= 0).all()
    assert y.last.tolist() == [310, 5000, 910, 1210]


def test_another_device_has_its_own_windows() -> None:
    rows = [*ahead([1, 2, 3, 4], 1000, 3000),
            call("cudaLaunchKernel", 6, 7, 90), kernel(10, 20, 90, device=1)]
    assert of(rows).kind == steady.DEVICE
    y = of(rows, device=1)
    assert (y.kind, y.device_ns) == (steady.HOST, NONE)
    assert y.last.tolist() == [20, NONE, NONE, NONE]


def test_an_activity_without_launch_belongs_to_the_step_of_the_one_before_it_on_its_stream() -> None:
    rows = [*ahead([1, 2, 3, 4], 1000, 3000), kernel(3005, 3009, 999, stream=20)]
    j = Joined(trace(rows))
    lone = int(np.flatnonzero(j.launch < 0)[0])
    assert steady.step_of_activities(j, steps.find(j))[lone] == NONE, "nothing is known of its stream"
    j = Joined(trace([*ahead([1, 2, 3, 4], 1000, 3000), kernel(6011, 6012, 999)]))
    lone = int(np.flatnonzero(j.launch < 0)[0])
    assert steady.step_of_activities(j, steps.find(j))[lone] == 2


def test_without_steps_there_is_no_step_time() -> None:
    y = of([call("cudaLaunchKernel", 0, 5, 1), kernel(6, 50, 1)])
    assert (y.step_ns, y.mean_ns, y.device_ns) == (NONE, NONE, NONE)
    assert y.windows.tolist() == [[0, 50]]
