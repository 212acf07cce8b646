"""The loader as a queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.loader import LoaderModel, loader_model

MS = 1e6


def waiting(**changed):
    """A loop that waits 40 of 52 ms for storage, with next to no CPU time."""
    told = {"step": 52 * MS, "rest": 12 * MS, "wait": 40 * MS, "workers": 0, "wait_cpu": 2 * MS,
            "workers_cores": None, "target_cores": 0.4, "thread_cpu": 14 * MS, "cores": 8}
    return loader_model(**{**told, **changed})


def test_a_loader_that_waits_for_storage_takes_few_workers():
    model = waiting()
    best = model.best()
    assert best == 4
    low, middle, high = model.speedup(best)
    assert 3.5 < low < middle < high < 5.5
    assert high / low <= 1.3


def test_more_workers_than_cores_only_where_the_loader_waits():
    assert waiting(cores=2).best() == 4
    computing = waiting(cores=2, wait_cpu=39 * MS, target_cores=1.0)
    assert max(computing.candidates()) == 2


def test_a_loader_that_computes_is_bound_by_the_cores():
    model = waiting(cores=2, wait_cpu=40 * MS, target_cores=1.2)
    assert model.step_with(8) == pytest.approx(1.2 * 52 * MS / 2)


def test_a_crowded_machine_widens_the_interval():
    shared = waiting(cores=8, others=0.9)
    calm, crowded = waiting(cores=8), waiting(cores=2, wait_cpu=40 * MS, target_cores=1.9)
    ratio = lambda model: model.speedup(2)[2] / model.speedup(2)[0]  # noqa: E731
    assert ratio(calm) <= 1.3 < ratio(crowded)
    assert ratio(calm) < ratio(shared)


def test_with_workers_the_service_time_is_all_of_theirs():
    model = waiting(workers=2, step=30 * MS, rest=12 * MS, workers_cores=0.3, target_cores=0.8)
    assert model.service == 60 * MS and model.cpu == pytest.approx(9 * MS)
    assert model.candidates() == [4, 8, 16]
    assert model.best() == 8


def test_no_candidates_are_left_at_the_limit():
    assert waiting(workers=16, workers_cores=15.0, cores=16).best() is None


def test_without_the_cpu_time_there_is_no_model():
    assert waiting(wait_cpu=None) is None
    assert waiting(workers=2, workers_cores=None) is None


def test_time_without_a_core_is_no_waiting():
    """Beside other programs workers that compute get little CPU time: that is no reason for more of them."""
    crowded = waiting(workers=2, step=120 * MS, cores=2, workers_cores=0.4, workers_waiting=1.6)
    assert crowded.computes and crowded.candidates() == []
    asleep = waiting(workers=2, step=120 * MS, cores=2, workers_cores=0.1, workers_waiting=0.1)
    assert not asleep.computes and asleep.candidates() == [4]
    more = waiting(workers=4, step=60 * MS, cores=2, workers_cores=0.2, workers_waiting=0.2)
    assert more.candidates() == [8]
    alone = waiting(wait=40 * MS, wait_cpu=20 * MS, wait_crowded=18 * MS, cores=2)
    assert alone.computes and max(alone.candidates()) == 2


def test_a_batch_that_is_half_work_takes_twice_as_many_workers_as_cores():
    assert max(waiting(wait_cpu=20 * MS, cores=2).candidates()) == 4
    assert max(waiting(wait_cpu=26 * MS, cores=4).candidates()) == 4


def test_ready_batches_need_no_workers():
    """2 workers that work 2 ms for a batch which takes the loop 6 ms to take over."""
    handed = waiting(workers=2, step=20 * MS, rest=14 * MS, workers_cores=0.1, target_cores=0.9, handed=True)
    assert handed.candidates() == [0] and handed.best() == 0
    assert handed.step_with(0) == pytest.approx((14 + 2 / 1.12) * MS)


def test_workers_that_never_rest_are_what_is_waited_for():
    """A worker that computes in Python hands a ready batch over in between: 45 ms of 51, measured."""
    busy = waiting(workers=1, step=51 * MS, rest=6 * MS, wait=45 * MS, workers_cores=0.98, cores=2,
                   handed=True)
    assert not busy.handed and busy.best() == 2


def test_sending_arrays_is_no_work_that_the_loop_would_have_without_workers():
    """As measured: 9.8 MB a batch, 24.7 ms a step with 2 workers, 4.5 ms with none."""
    told = {"workers": 2, "step": 24.7 * MS, "rest": 5.2 * MS, "wait": 19.5 * MS, "workers_cores": 0.67,
            "target_cores": 1.3, "thread_cpu": 12 * MS, "cores": 2, "handed": True}
    arrays, tensors = waiting(**told, array_bytes=9_830_656), waiting(**told)
    assert arrays.speedup(0)[0] > 2 and arrays.speedup(0)[1] > 3 and arrays.harmless(0)
    assert tensors.speedup(0)[1] < 1.5


SHARE = st.integers(0, 1000).map(lambda n: n / 1000)  # not so small that a product of two is zero


WORKERS = st.sampled_from([0, 1, 2, 8])


@given(st.floats(1e5, 1e10), SHARE, SHARE, st.floats(0, 64), st.integers(1, 64), WORKERS)
def test_predictions_are_ordered_and_more_workers_never_take_longer(step, wait, cpu, busy, cores, workers):
    service = workers * step if workers else wait * step
    model = LoaderModel(step, (1 - wait) * step, service, cpu * service, busy * step, cores, workers)
    times = [model.step_with(n) for n in (1, 2, 4, 8, 16)]
    assert times == sorted(times, reverse=True)
    low, middle, high = model.speedup(4)
    assert 0 < low < middle < high
    best = model.best()
    assert best is None or (best > workers and best <= 16)


@given(st.floats(1e5, 1e10), SHARE, SHARE, SHARE, st.integers(1, 64), WORKERS)
def test_no_more_workers_are_named_than_cores_and_work_allow(step, wait, work, crowded, cores, workers):
    model = loader_model(
        step=step, rest=(1 - wait) * step, wait=wait * step, workers=workers, wait_cpu=work * wait * step,
        workers_cores=work * workers, target_cores=1.0, thread_cpu=step, cores=cores,
        wait_crowded=(1 - work) * crowded * wait * step, workers_waiting=(1 - work) * crowded * workers)
    most = max(model.candidates(), default=0)
    assert most <= (4 * cores if workers else 2 * cores)
    if work >= 0.7 or (work + (1 - work) * crowded >= 0.7 and (workers or wait)):
        assert most <= cores
    assert most * model.work <= cores * 1.0001 or most <= cores


def test_no_step_is_shorter_than_the_loader_alone_was_measured():
    model = waiting()
    free, capped = model.speedup(4), waiting(alone={4: 20 * MS, 2: 1 * MS}).speedup(4)
    assert capped[1] == 52 / 20 < free[1]
    assert capped[2] == 52 / 20  # not even at best
    assert waiting(alone={4: 1 * MS}).speedup(4) == free
    assert waiting(alone={8: 20 * MS}).speedup(4) == capped  # fewer workers are no faster
    assert waiting(alone={2: 40 * MS}).speedup(4) == capped  # twice as many at best twice as fast
