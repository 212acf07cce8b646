"""Steps as arrays, read from a run file."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.steps import Steps, load_steps, partition, step_processes, training_process
from profiler.model import STAGES, STEP_EVALUATION
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import STAGE_MS, START_NS, make_run, run_meta

NS = st.integers(0, 10**10)


@given(st.lists(st.tuples(NS, NS, NS, NS, NS, NS), max_size=20))
def test_stages_sum_to_the_wall_exactly_whatever_was_measured(rows):
    array = np.array(rows, np.int64).reshape(-1, 6)
    wall = array[:, 5]
    stages = partition(wall, dict(zip(STAGES, array[:, :5].T, strict=False)))
    assert list(stages) == list(STAGES)
    assert (sum(stages.values()) == wall).all()
    assert all((values >= 0).all() for values in stages.values())


@given(st.lists(st.integers(0, 10**9), min_size=5, max_size=5), st.integers(0, 10**9))
def test_stages_inside_the_step_are_kept_as_measured(measured, rest):
    wall = np.array([sum(measured) + rest], np.int64)
    stages = partition(wall, {s: np.array([v]) for s, v in zip(STAGES, measured, strict=False)})
    assert [int(stages[s][0]) for s in STAGES] == [*measured, rest]


def test_steps_come_back_as_planned(tmp_path):
    path = make_run(tmp_path / "a.stepscope", steps=30, lag={"data": lambda k: 5.3 if k > 10 else None})
    with Run.open(path) as run:
        steps = load_steps(run)
    assert len(steps) == 30 and steps.index.tolist() == list(range(30))
    for stage, ms in STAGE_MS.items():
        assert (steps.stages[stage] == round(ms * 1e6)).all(), stage
    assert (steps.wall == round(sum(STAGE_MS.values()) * 1e6)).all()
    assert np.isnan(steps.lag["data"][:11]).all() and (steps.lag["data"][11:] == 5.3e6).all()
    assert np.isnan(steps.device["forward"]).all()
    assert (steps.extras["samples"] == 64).all()
    assert (np.diff(steps.t1_ns) > 0).all()


def test_a_window_holds_the_steps_that_ended_in_it(tmp_path):
    with Run.open(make_run(tmp_path / "a.stepscope", steps=30)) as run:
        every = load_steps(run)
        some = load_steps(run, None, int(every.t1_ns[10]), int(every.t1_ns[19]))
    assert some.index.tolist() == list(range(10, 20))


def test_the_training_process_is_the_one_that_trains(tmp_path):
    writer = RunWriter.create(tmp_path / "a.stepscope", run_meta())
    for pid, steps, flags in ((1, 50, STEP_EVALUATION), (2, 20, 0), (3, 5, 0)):
        process = writer.add_process(pid, "python")
        for k in range(steps):
            for metric, value in (("step.wall", 1e6), ("step.flags", flags)):
                writer.sample(writer.track(metric, process=process), START_NS + k * 2_000_000, value)
    writer.finish("finished", START_NS + 10**9)
    with Run.open(tmp_path / "a.stepscope") as run:
        chosen = training_process(run)
        assert {p.pid for p in run.processes if p.id == chosen} == {2}
        assert len(step_processes(run)) == 3
        assert len(load_steps(run)) == 20


def test_a_run_without_steps(tmp_path):
    RunWriter.create(tmp_path / "a.stepscope", run_meta()).finish("finished", START_NS)
    with Run.open(tmp_path / "a.stepscope") as run:
        assert training_process(run) is None
        steps = load_steps(run)
    assert len(steps) == 0 and steps.process is None


@pytest.mark.parametrize("ns", [1e290, -1e290])
def test_lengths_that_no_step_has_are_read_without_a_word(tmp_path, ns):
    """As in a damaged run: numpy would warn, in the user's terminal."""
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, run_meta())
    process = writer.add_process(1, "target")
    for i in range(3):
        for metric, value in (("step.index", i), ("step.wall", ns), ("step.data", ns), ("step.flags", 0)):
            writer.sample(writer.track(metric, process=process), START_NS + i * 1_000_000, value)
    writer.finish("finished", START_NS + 10_000_000)
    with warnings.catch_warnings(), Run.open(path) as run:
        warnings.simplefilter("error")
        steps = load_steps(run, process)
    assert np.sign(steps.wall).tolist() == [np.sign(ns)] * 3


def test_selecting_keeps_columns_together():
    n = np.arange(6, dtype=np.int64)
    steps = Steps(1, n, n * 10, n * 10 + 5, n % 2, {"data": n}, {"samples": n * 1.0}, {}, {"data": n * 2.0})
    odd = steps.select(n % 2 == 1)
    assert odd.index.tolist() == odd.stages["data"].tolist() == [1, 3, 5]
    assert odd.lag["data"].tolist() == [2, 6, 10] and odd.wall.tolist() == [5, 5, 5]
