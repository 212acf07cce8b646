"""Steady state: where the warm-up ends, and which steps count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.steady import LATEST, cpu_with_and_without, steady, warm_up
from profiler.analysis.steps import Steps
from profiler.model import STEP_EPOCH_FIRST, STEP_EVALUATION, STEP_PARTIAL, STEP_PROFILED

MS = 1_000_000


def steps_of(wall_ms, flags=None):
    wall = np.array(wall_ms, np.float64) * MS
    end = np.cumsum(wall.astype(np.int64))
    n = len(end)
    nothing = {name: np.full(n, np.nan) for name in ("samples",)}
    return Steps(1, np.arange(n), end - wall.astype(np.int64), end,
                 np.array(flags if flags is not None else [0] * n, np.int64), {}, nothing, {}, {})


def test_steps_that_settle_at_once():
    assert warm_up(np.full(40, 50 * MS)) == (0, True)


def test_slow_first_steps_are_warm_up():
    taken, settled = warm_up(np.array([900.0, 300, 120] + [50] * 40) * MS)
    assert (taken, settled) == (3, True)


def test_a_slow_decay_ends_when_a_window_changes_by_less_than_five_percent():
    wall = 50 + 200 * np.exp(-np.arange(80) / 12)
    taken, settled = warm_up((wall * MS).astype(np.int64))
    assert settled and 20 < taken <= LATEST
    first, following = np.median(wall[taken:taken + 10]), np.median(wall[taken + 10:taken + 20])
    assert taken == LATEST or following > 0.95 * first


def test_warm_up_ends_at_step_fifty_at_the_latest():
    wall = np.geomspace(1000, 10, 200)
    assert warm_up((wall * MS).astype(np.int64)) == (LATEST, True)


def test_a_short_run_that_never_settles_counts_its_second_half():
    wall = np.geomspace(1000, 10, 20)
    assert warm_up((wall * MS).astype(np.int64)) == (10, False)


@given(st.lists(st.integers(1, 10**10), max_size=120))
def test_warm_up_never_takes_more_than_allowed(walls):
    taken, _ = warm_up(np.array(walls, np.int64))
    assert 0 <= taken <= min(LATEST, len(walls))


FLAGS = st.lists(st.sampled_from([0, 0, 0, STEP_EVALUATION, STEP_EPOCH_FIRST, STEP_PROFILED, STEP_PARTIAL]),
                 max_size=80)


@given(FLAGS, st.randoms(use_true_random=False))
def test_every_step_is_steady_or_left_out_for_one_reason(flags, random):
    steps = steps_of([random.randint(10, 1000) for _ in flags], flags)
    state = steady(steps)
    special = STEP_EPOCH_FIRST | STEP_PROFILED | STEP_PARTIAL
    assert not (steps.flags[state.mask] & special).any()
    if state.kind == "training":
        assert not (steps.flags[state.mask] & STEP_EVALUATION).any()
        assert int(state.mask.sum()) + sum(state.left_out.values()) == len(flags)
    else:
        assert not steps.training.any()
    if state.warm_up_end_ns is not None:
        assert (steps.t0_ns[state.mask] >= state.warm_up_end_ns).all()


def test_epoch_starts_profiled_and_evaluation_steps_stand_apart():
    flags = [STEP_EPOCH_FIRST] + [0] * 29 + [STEP_EVALUATION] * 5 + [STEP_EPOCH_FIRST] + [0] * 20
    flags += [STEP_PROFILED] * 3 + [STEP_PARTIAL]
    state = steady(steps_of([50] * len(flags), flags))
    assert state.left_out == {"warm-up": 1, "first of an epoch": 1, "profiled": 3, "evaluation": 5,
                              "incomplete": 1}
    assert state.mask.sum() == 49


def test_throttled_steps_are_left_out_while_enough_others_remain():
    steps = steps_of([50] * 60)
    few = np.array([[1000, 1500]], np.int64) * MS
    state = steady(steps, few)
    assert state.left_out == {"throttled": 10} and state.mask.sum() == 50
    most = np.array([[500, 3000]], np.int64) * MS
    assert steady(steps, most).mask.sum() == 60


def test_a_window_later_in_the_run_knows_when_the_warm_up_ended():
    steps = steps_of([900, 300] + [50] * 60)
    end = steady(steps).warm_up_end_ns
    late = steps.select(np.arange(62) >= 40)
    assert steady(late, None, end).mask.all()
    assert steady(steps.select(np.arange(62) < 2), None, end).mask.sum() == 0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_steps(n):
    state = steady(steps_of([50] * n))
    assert len(state.mask) == n and state.mask.sum() <= n


def test_cpu_time_of_a_step_with_the_profiler_and_without():
    flags = [STEP_PROFILED if 20 <= k < 24 else 0 for k in range(40)]
    steps = steps_of([50] * 40, flags)
    steps.extras["thread_cpu"] = np.where(np.array(flags) != 0, 30.0, 20.0)
    assert cpu_with_and_without(steps, steady(steps)) == (30.0, 20.0)
    steps.extras["thread_cpu"] = np.full(40, np.nan)
    assert cpu_with_and_without(steps, steady(steps)) is None
    plain = steps_of([50] * 40)
    plain.extras["thread_cpu"] = np.full(40, 20.0)
    assert cpu_with_and_without(plain, steady(plain)) is None
