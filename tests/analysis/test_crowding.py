"""Who has the cores while the loop waits for one. Figures as measured on two cores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.crowding import crowding


def live(waiting, target, threads=None, host=None):
    told = {"loop.waiting": waiting, "target.cpu": target, "target.waiting": threads, "host.cpu": host}
    return {metric: value for metric, value in told.items() if value is not None}


def test_four_threads_that_compute_beside_the_loop():
    found = crowding(live(0.66, 1.87, 3.36, 0.99), 0.35, 2, 2)
    assert found.own == pytest.approx(0.62, abs=0.02) and found.others < 0.05 and found.wanted > 5


def test_without_a_count_of_waiting_threads_there_are_at_least_those_that_run_and_the_loop():
    found = crowding(live(0.66, 1.87, None, 0.99), 0.35, 2, 2)
    assert found.wanted == pytest.approx(2.53) and not found.counted and found.own == 0


def test_two_threads_that_fit_and_others_that_take_their_cores():
    found = crowding(live(0.5, 1.0, 1.0, 1.0), 0.5, 2, 2)
    assert found.own == 0 and found.others == 0.5 and found.busy == pytest.approx(1.0)


def test_both_at_once():
    found = crowding(live(0.7, 1.2, 2.8, 1.0), 0.3, 2, 2)
    assert found.own == pytest.approx(0.5) and found.others == pytest.approx(0.2)


def test_alone_nobody_else_is_blamed():
    """Two ranks with a thread each, and helper threads of theirs in bursts."""
    found = crowding(live(0.11, 1.6, 0.7, 0.88), 0.7, 2, 2)
    assert found.own == found.others == 0


def test_two_ranks_with_helpers_on_a_busy_machine_do_not_crowd_themselves():
    found = crowding(live(0.64, 0.54, 1.94, 1.0), 0.25, 2, 2)
    assert found.own == 0 and found.others == 0.64


def test_four_threads_that_compute_beside_the_loop_on_a_busy_machine():
    found = crowding(live(0.87, 0.51, 4.45, 1.0), 0.11, 2, 2)
    assert found.own == pytest.approx(0.58, abs=0.01) and found.others == pytest.approx(0.29, abs=0.01)


def test_of_a_large_machine_of_which_the_target_may_use_two_cores():
    found = crowding(live(0.6, 1.9, 3.0, 0.5), 0.4, 2, 64)
    assert found.busy == pytest.approx(0.1) and found.others == 0 and found.own > 0.5


@pytest.mark.parametrize("told", [{}, {"loop.waiting": 0.5}, {"target.cpu": 1.0}])
def test_what_was_not_measured_is_not_told(told):
    assert crowding(told, 0.5, 2, 2) is None


def test_others_are_not_blamed_where_their_use_was_not_measured():
    found = crowding(live(0.5, 1.0, 1.0), 0.5, 2, 2)
    assert found.busy is None and found.others == 0


SHARE = st.floats(0, 1)


@given(SHARE, st.floats(0, 8), st.floats(0, 20) | st.none(), SHARE | st.none(), SHARE, st.integers(1, 8))
def test_the_parts_are_no_more_than_the_wait(waiting, target, threads, host, cpu, cores):
    found = crowding(live(waiting, target, threads, host), cpu, cores, 8)
    assert found.own >= 0 and found.others >= 0
    assert found.own + found.others <= found.waiting + 1e-9
