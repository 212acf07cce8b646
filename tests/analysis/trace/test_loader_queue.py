"""The loader as a queue."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.loader import IN_WORKER, MOST_WORKERS
from profiler.analysis.trace.loader_queue import HIDDEN, enough, step


@pytest.mark.parametrize(("service", "workers", "cores", "hands"), [
    (50.0, 1, None, 1), (300.0, 1, None, 1), (300.0, 2, None, 2), (300.0, 4, None, 4), (300.0, 4, 1, 1),
    (300.0, 4, 2, 2), (900.0, 4, 8, 4)])
def test_even_batches(service, workers, cores, hands):
    assert step([service], 100.0, workers, cores) == pytest.approx(max(100.0, IN_WORKER * service / hands))


@pytest.mark.parametrize(("service", "needed"), [
    ([10.0], 2), ([88.0], 2), ([95.0], 3), ([170.0], 3), ([350.0], 5), ([1e5], MOST_WORKERS)])
def test_as_many_as_hide_the_loader_and_one_to_spare(service, needed):
    assert enough(service, 100.0) == needed


def test_batches_that_are_slow_in_a_row_need_more_workers_than_their_mean_says():
    uneven = [10.0] * 20 + [400.0] * 5
    even = [sum(uneven) / len(uneven)]
    assert enough(uneven, 100.0) > enough(even, 100.0)
    assert step(uneven, 100.0, 2) > 1.1 * step(even, 100.0, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=12), st.integers(1, 6))
def test_neither_the_loop_nor_the_workers_are_faster_than_they_can(service, workers):
    found = step(service, 100.0, workers)
    mean = IN_WORKER * sum(service) / len(service)
    assert found >= max(100.0, mean / workers) * (1 - 1e-2)
    assert found <= (100.0 + mean) * (1 + 1e-2) + 1e-6
    assert step(service, 100.0, workers, cores=1) >= found * (1 - 1e-9)
    if (best := enough(service, 100.0)) < MOST_WORKERS:
        assert step(service, 100.0, best - 1) <= HIDDEN * 100.0
