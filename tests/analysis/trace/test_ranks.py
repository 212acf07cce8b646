"""Several ranks: matching, clocks, waiting, and who causes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.ranks.communication import shared
from profiler.analysis.trace.ranks.ranks import CLOCKS, DURATIONS, NOTHING, Process, Ranks, ranks
from profiler.analysis.trace.ranks.straggler import straggler
from profiler.trace.model import Trace
from tests.reference import expected, needs_reference, traces
from tests.traces import Timeline

STEP = 100_000
SENDING = 2000  # what the collective itself takes


def rank_trace(rank: int, arrivals: Sequence[int], last: Sequence[int], *, size: int = 2, clock: int = 0,
               first: int = 1, number: Any = None, name: str = "AllReduce") -> Trace:
    """One collective a step: this rank arrives at `arrivals[k]`, the last one at `last[k]`, ns from
    the step's start. `clock` is how far this rank's clock is ahead."""
    timeline = Timeline(rank=rank, world_size=size)
    for k, (mine, latest) in enumerate(zip(arrivals, last, strict=True)):
        t = clock + k * STEP
        args = {"Seq": number[k], "Process Group Name": "0", "Group size": size} if number else {}
        timeline.step(first + k, t, t + STEP - 100)
        timeline.call("cudaLaunchKernel", t + mine - 1000, t + mine - 500, 100 + k)
        timeline.kernel(f"ncclDevKernel_{name}_RING", t + mine, t + latest + SENDING, 100 + k, stream=20,
                        **args)
    return timeline.trace()


def job(arrivals: Sequence[Sequence[int]], **kwargs: Any) -> list[Trace]:
    """A trace a rank from when each arrives in each step."""
    last = [max(of_step) for of_step in zip(*arrivals, strict=True)]
    clocks = kwargs.pop("clocks", [0] * len(arrivals))
    return [rank_trace(r, own, last, size=len(arrivals), clock=clocks[r], **kwargs)
            for r, own in enumerate(arrivals)]


def together(found: Sequence[Trace]) -> Ranks:
    result = ranks([Process.of(j, steps.find(j)) for j in map(Joined, found)])
    assert result is not None
    return result


def test_waiting_is_the_last_arrival_less_the_own_start() -> None:
    found = together(job([[10_000, 20_000], [15_000, 18_000], [30_000, 18_500]]))
    assert found.basis == CLOCKS
    assert found.wait.tolist() == [[20_000, 15_000, 0], [0, 2000, 1500]]
    assert found.notes == ()


def test_one_process_waits_for_nobody_that_can_be_seen() -> None:
    [trace] = job([[10_000]])
    j = Joined(trace)
    assert ranks([Process.of(j, steps.find(j))]) is None


def test_what_others_show_is_missing_where_not_all_ranks_are_given() -> None:
    found = together(job([[10_000], [20_000], [30_000]])[:2])
    assert found.wait.tolist() == [[10_000, 0]]
    assert any("2 of 3 ranks" in note for note in found.notes)


@pytest.mark.parametrize("offset", [11_560_000_000, -40_000, 4_000])
def test_a_clock_that_is_off_does_not_pass_for_waiting(offset: int) -> None:
    true = job([[10_000, 12_000, 11_000], [15_000, 9_000, 12_000]])
    skewed = job([[10_000, 12_000, 11_000], [15_000, 9_000, 12_000]], clocks=[0, offset])
    found = together(skewed)
    assert found.wait.tolist() == together(true).wait.tolist()
    clock = found.clocks[1]
    assert clock.low is not None and clock.high is not None
    assert clock.offset == offset and clock.low <= offset <= clock.high
    assert found.basis == (CLOCKS if clock.agrees else DURATIONS)


def test_a_clock_that_is_plainly_off_is_told() -> None:
    found = together(job([[10_000], [15_000]], clocks=[0, 5_000_000]))
    assert found.basis == DURATIONS and not found.clocks[1].agrees
    assert any("rank 1 is 5.000 ms off" in note for note in found.notes)


def test_bases_that_differ_are_taken_into_account() -> None:
    """The same moments, told from another zero."""
    first, second = job([[10_000, 12_000], [15_000, 9_000]])
    later = replace(second, base_ns=second.base_ns - 11_560_000_000, host=moved(second.host, 11_560_000_000),
                    device=moved(second.device, 11_560_000_000))
    found = together([first, later])
    assert (found.basis, found.clocks[1].offset) == (CLOCKS, 0)
    assert found.wait.tolist() == together([first, second]).wait.tolist()


def moved(table: Any, by: int) -> Any:
    return replace(table, start=table.start + by, end=table.end + by)


def test_without_a_stated_base_waiting_is_read_off_durations() -> None:
    first, second = job([[10_000, 12_000], [15_000, 9_000]])
    found = together([first, replace(second, absolute=False, base_ns=0)])
    assert found.basis == DURATIONS and found.wait.tolist() == [[5000, 0], [0, 3000]]
    assert any("time base" in note for note in found.notes)


@given(st.lists(st.lists(st.integers(2000, 60_000), min_size=3, max_size=3), min_size=2, max_size=5),
       st.randoms())
@settings(max_examples=25, deadline=None)
def test_the_order_of_ranks_changes_nothing(arrivals: list[list[int]], random: Random) -> None:
    all_of_them = job(arrivals)
    order = list(range(len(arrivals)))
    random.shuffle(order)
    one, other = together(all_of_them), together([all_of_them[r] for r in order])
    assert one.wait[:, order].tolist() == other.wait.tolist()
    assert (one.wait >= 0).all() and (one.wait <= one.matched.end - one.matched.start).all()
    assert (one.wait.min(axis=1) == 0).all()
    who, again = straggler(one, STEP), straggler(other, STEP)
    assert (who.name, who.margin_ns) == (again.name, again.margin_ns)


def test_clocks_that_agree_are_said_to() -> None:
    clock = together(job([[10_000], [15_000]])).clocks[1]
    assert clock.agrees and clock.offset == 0


def test_sequence_numbers_match_windows_that_begin_at_different_collectives() -> None:
    first = rank_trace(0, [10_000] * 3, [12_000] * 3, number=[7, 8, 9])
    second = rank_trace(1, [12_000] * 3, [12_000] * 3, number=[8, 9, 10], clock=STEP, first=2)
    found = together([first, second])
    assert len(found.matched) == 2
    assert found.matched.row.tolist() == [[1, 0], [2, 1]]
    assert any("2 collectives have no counterpart" in note for note in found.notes)


def test_step_numbers_match_where_there_are_no_sequence_numbers() -> None:
    first = rank_trace(0, [10_000] * 3, [12_000] * 3, first=4)
    second = rank_trace(1, [12_000] * 3, [12_000] * 3, first=5, clock=STEP)
    found = together([first, second])
    assert found.matched.step.tolist() == [5, 6]
    assert found.wait.tolist() == [[2000, 0], [2000, 0]]


def test_steps_of_different_collectives_are_not_matched() -> None:
    found = together([rank_trace(0, [10_000], [12_000]), rank_trace(1, [12_000], [12_000], name="AllGather")])
    assert len(found.matched) == 0 and any("no counterpart" in note for note in found.notes)


def test_other_parts_of_a_job_give_no_waiting() -> None:
    """Without numbers of either kind two windows can look alike; the clocks tell that they are not."""
    def plain(rank: int, starts: Sequence[int]) -> Trace:
        timeline = Timeline(rank=rank, world_size=2)
        for k, t in enumerate(starts):
            timeline.kernel("ncclDevKernel_AllReduce_RING", t, t + 3000, 100 + k, stream=20)
        return timeline.trace()

    found = together([plain(0, [0, 50_000, 90_000]), plain(1, [10_000, 20_000, 95_000])])
    assert found.basis == NOTHING and not found.wait.any()
    assert straggler(found, STEP).name is None


def test_groups_are_matched_each_for_itself() -> None:
    def two_groups(rank: int, order: Sequence[str], offset: int) -> Trace:
        timeline = Timeline(rank=rank, world_size=2).step(1, 0, STEP)
        for k, group in enumerate(order):
            t = 10_000 * (k + 1) + offset
            timeline.call("cudaLaunchKernel", t - 500, t - 400, 100 + k)
            told: dict[str, Any] = {"Process Group Name": group, "Collective name": "allreduce"}
            timeline.kernel("ncclDevKernel_AllReduce_RING", t, 10_000 * (k + 1) + 5000, 100 + k, stream=20,
                            **told)
        return timeline.trace()

    found = together([two_groups(0, "abb", 0), two_groups(1, "abb", 300)])
    assert found.wait.tolist() == [[300, 0]] * 3


def test_two_traces_of_one_rank_are_not_two_ranks() -> None:
    one = job([[10_000], [20_000]])[0]
    found = together([one, one])
    assert len(found.matched) == 0
    assert any("Several traces are of rank 0" in note for note in found.notes)


def test_the_rank_that_is_late_in_every_step_is_the_straggler() -> None:
    arrivals = [[10_000 + 100 * r] * 4 for r in range(3)] + [[30_000] * 4]
    found = straggler(together(job(arrivals)), STEP)
    assert found.name == "rank 3"
    assert found.margin_ns == 30_000 - 10_200 and found.share == pytest.approx(0.198)
    assert [w.last for w in found.waiting] == [0, 0, 0, 3]  # the first step is not counted


def test_ranks_that_take_turns_are_no_stragglers() -> None:
    late = [[30_000 if k % 3 == r else 10_000 for k in range(6)] for r in range(3)]
    found = straggler(together(job(late)), STEP)
    assert found.name is None and found.reason


def test_a_small_margin_names_nobody() -> None:
    found = straggler(together(job([[10_000] * 4, [10_500] * 4])), STEP)
    assert found.name is None and found.margin_ns == 500


def test_two_slow_ranks_hold_nobody_up_alone() -> None:
    found = straggler(together(job([[10_000] * 4, [30_000] * 4, [30_100] * 4])), STEP)
    assert found.name is None


def test_the_transfer_alone_is_what_the_last_to_arrive_spends() -> None:
    [row] = shared(together(job([[10_000, 20_000], [15_000, 18_000]])))
    assert (row.count, row.transfer_ns, row.wait_ns) == (2, SENDING, 3500)
    first_is_slow = [[10_000, 20_000, 20_000, 20_000], [90_000, 18_000, 18_000, 18_000]]
    [row] = shared(together(job(first_is_slow)))
    assert (row.count, row.wait_ns) == (3, 2000), "the first step of a window does not count"


@needs_reference
def test_eight_ranks_of_dlrm() -> None:
    """All eight collectives are found in all ranks; their ends differ by a few microseconds, so that waiting
    by start times and by durations is the same."""
    processes = [Process.of(j, steps.find(j)) for j in map(Joined, traces("v100_dlrm_8ranks.tar.gz"))]
    found = ranks(processes)
    assert found is not None and found.basis == CLOCKS and found.notes == ()
    m = found.matched
    assert m.row.shape == (8, 8) and (m.row >= 0).all()
    took = m.end - m.start
    assert np.abs((took - took.min(axis=1, keepdims=True)) - found.wait).max() < 10_000
    who = straggler(found, max(steady.steady(p.joined, p.steps).step_ns for p in processes))
    assert who.name == "rank 7" and who.waiting[7].wait_ns == min(w.wait_ns for w in who.waiting)
    assert "one step only" in who.reason


@needs_reference
def test_where_hta_differs_about_stragglers() -> None:
    """HTA returns the two ranks that spend least in communication, whether or not they hold anybody up: rank
    2 is one of them, and arrives last nowhere."""
    assert expected()["v100_dlrm_8ranks.tar.gz"]["hta_0.6.1"]["stragglers"] == [2, 7]
    processes = [Process.of(j, steps.find(j)) for j in map(Joined, traces("v100_dlrm_8ranks.tar.gz"))]
    found = ranks(processes)
    assert found is not None
    who = straggler(found, 20_000_000)
    assert who.waiting[2].last == 0 and who.waiting[2].held_up_ns == 0
