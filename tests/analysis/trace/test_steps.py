"""Which rule finds the steps, and what is a step: definitions, section 1; T11 of the cases."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.trace import steps
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE
from tests.analysis.trace.build import D, H, call, copy, kernel, note, op, step, trace

FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SGD = "Optimizer.step#SGD.step"


def find(*rows: H | D | list[H | D]) -> Steps:
    flat = [r for each in rows for r in (each if isinstance(each, list) else [each])]
    return steps.find(Joined(trace(flat)))


def work(start: int, thread: int = 0, length: int = 10) -> list[H | D]:
    """A launch at `start`, and its kernel."""
    return [call("cudaLaunchKernel", start, start + 2, 1000 + start, thread),
            kernel(start + 3, start + 3 + length, 1000 + start)]


def loop(numbers: list[int], thread: int = 0, length: int = 100, first: int = 0) -> list[H | D]:
    """Steps one after the other, each with work."""
    rows: list[H | D] = []
    for k, number in enumerate(numbers):
        t0 = first + k * length
        rows += [step(number, t0, t0 + length - 1, thread), *work(t0 + 10, thread)]
    return rows


def test_every_complete_step_counts_but_the_first() -> None:
    s = find(loop([0, 1, 2, 3, 4]))
    assert s.rule == steps.PROFILER_STEP
    assert s.number.tolist() == [0, 1, 2, 3, 4]
    assert s.counted.tolist() == [False, True, True, True, True]
    assert s.notes == ()


def test_the_first_step_stays_when_fewer_than_three_would_remain() -> None:
    assert find(loop([7, 8, 9])).counted.all()
    assert find(loop([7, 8, 9, 10])).counted.tolist() == [False, True, True, True]


def test_a_gap_in_the_numbers_begins_another_window() -> None:
    s = find(loop([4, 5, 8, 9, 10]))
    assert s.window.tolist() == [0, 0, 1, 1, 1]
    assert s.counted.tolist() == [False, True, False, True, True]
    assert s.follows().tolist() == [False, True, False, True, True]
    assert find(loop([4, 5, 8, 9])).counted.all(), "two would remain"


def test_steps_that_begin_again_begin_another_window() -> None:
    assert find(loop([4, 5, 6, 4, 5, 6])).window.tolist() == [0, 0, 0, 1, 1, 1]


def test_the_same_step_on_another_thread_counts_once() -> None:
    """Steps 4, 5, 7 on one thread, and 4 again on another that launches less; and one that launches more."""
    s = find(loop([4, 5, 7]), step(4, 5, 60, 1), work(20, 1, length=2))
    assert (s.number.tolist(), s.thread) == ([4, 5, 7], 0)
    assert "1 step annotations of other threads" in s.notes[0]
    s = find(loop([4, 5, 7]), step(4, 5, 90, 1), work(20, 1, length=500))
    assert (s.number.tolist(), s.start.tolist(), s.thread) == ([4, 5, 7], [5, 100, 200], 1)
    assert "1 step annotations of other threads" in s.notes[0]


def test_a_loop_that_goes_to_another_thread_goes_on() -> None:
    s = find(loop([4, 5]), loop([6, 7, 8], thread=1, first=200))
    assert (s.number.tolist(), s.thread, s.notes) == ([4, 5, 6, 7, 8], 1, ())
    assert not s.window.any()


def test_what_goes_on_beside_a_step_is_none() -> None:
    """Another loop with other numbers, on a thread that launches less."""
    s = find(loop([4, 5, 6]), *(step(20 + k, 100 * k + 20, 100 * k + 110, 1) for k in range(3)))
    assert (s.number.tolist(), s.thread) == ([4, 5, 6], 0)
    assert "3 step annotations of other threads" in s.notes[0]


def test_a_step_inside_another_is_not_counted() -> None:
    s = find(loop([1, 2, 3]), step(50, 20, 60), step(51, 120, 180))
    assert s.number.tolist() == [1, 2, 3]


def test_a_step_whose_rounded_end_reaches_into_the_next_one_counts() -> None:
    s = find(step(1, 0, 101), step(2, 100, 200), step(3, 200, 300), work(10), work(110), work(210))
    assert s.number.tolist() == [1, 2, 3]
    assert s.end.tolist() == [100, 200, 300]


def test_a_window_that_the_end_of_the_loop_cut_is_no_step() -> None:
    """The profiler closes the step that it has just opened: nothing was launched in it."""
    s = find(loop([1, 2, 3]), step(4, 300, 305))
    assert s.number.tolist() == [1, 2, 3]
    assert s.notes == ("no step, cut by the end of the trace: #4",)
    assert find(loop([1, 2, 3, 4])).number.tolist() == [1, 2, 3, 4]


def test_a_step_without_launches_between_others_is_one() -> None:
    s = find(loop([1, 2]), step(3, 200, 299), loop([4, 5], first=300), step(6, 500, 599))
    assert s.number.tolist() == [1, 2, 3, 4, 5, 6]


def test_steps_without_any_launch() -> None:
    s = find(step(1, 0, 99), step(2, 100, 199), op("aten::mm", 10, 20), op("aten::mm", 110, 120))
    assert s.number.tolist() == [1, 2]


def iterations(n: int, *names: str) -> list[H | D]:
    rows: list[H | D] = []
    for k in range(n):
        t0 = 100 * k
        rows += [note(FETCH, t0, t0 + 5), *work(t0 + 10)]
        rows += [note(name, t0 + 40 + 10 * i, t0 + 45 + 10 * i) for i, name in enumerate(names)]
    return rows


def test_without_annotations_steps_go_from_one_optimizer_call_to_the_next() -> None:
    s = find(iterations(5, SGD))
    assert s.rule == steps.OPTIMIZER
    assert list(zip(s.start.tolist(), s.end.tolist(), strict=True)) == [(45 + 100 * k, 145 + 100 * k)
                                                                       for k in range(4)]
    assert s.counted.tolist() == [False, True, True, True]
    assert "no step annotations" in s.notes[0]


def test_the_optimizer_that_is_called_least_often_counts() -> None:
    """A generator's optimizer every second iteration."""
    adam = "Optimizer.step#Adam.step"
    rows = iterations(6, SGD) + [note(adam, 100 * k + 60, 100 * k + 65) for k in range(0, 6, 2)]
    assert find(rows).start.tolist() == [65, 265]


def test_two_calls_with_no_work_between_them_count_once() -> None:
    assert find(iterations(4, SGD, SGD)).start.tolist() == [55, 155, 255]


def test_optimizers_inside_backward_make_no_steps() -> None:
    """They run in hooks of the nodes: then the loader's fetches count."""
    node = "autograd::engine::evaluate_function: AccumulateGrad"
    rows = iterations(4) + [op(node, 100 * k + 30, 100 * k + 60) for k in range(4)]
    inside = [note(SGD, 100 * k + 40, 100 * k + 45) for k in range(4)]
    s = find(rows, inside)
    assert s.rule == steps.LOADER
    assert s.start.tolist() == [0, 100, 200]
    assert s.end.tolist() == [100, 200, 300], "the last one is cut by the end of the trace"


def test_fetches_with_no_work_between_them_count_once() -> None:
    twice = [note(FETCH, 100 * k + 6, 100 * k + 8) for k in range(4)]
    assert find(iterations(4), twice).start.tolist() == [0, 100, 200]


@pytest.mark.parametrize("rows", [[op("aten::mm", 5, 20)], iterations(1, SGD), work(10)])
def test_without_any_boundary_the_whole_trace_is_one_window(rows: list[H | D]) -> None:
    s = find(rows)
    assert s.rule == steps.WHOLE
    assert not s.per_step
    assert s.number.tolist() == [NONE]
    assert s.start[0] == min(r.start for r in rows)
    assert s.end[0] == max(r.end for r in rows)


def test_the_loop_of_a_trace_without_steps_is_not_the_autograd_thread() -> None:
    backward = [op("autograd::engine::evaluate_function: MmBackward0", 100, 200, 1), *work(110, 1, 80)]
    assert find(work(10), backward).thread == 0


def test_nothing_at_all() -> None:
    s = find()
    assert len(s) == 0
    assert not s.per_step


def test_where_a_time_lies() -> None:
    s = find(step(1, 0, 100), step(2, 110, 200), work(10), work(120))
    times = np.array([-5, 0, 99, 100, 109, 110, 199, 200])
    assert s.at(times).tolist() == [NONE, 0, 0, NONE, NONE, 1, 1, NONE]


def test_a_step_that_only_copies_is_one() -> None:
    s = find(loop([1, 2]), step(3, 200, 299), call("cudaMemcpyAsync", 210, 220, 9), copy(215, 219, 9))
    assert s.number.tolist() == [1, 2, 3]
