"""Figures of the steady steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.analysis.summary import rate, spread
from profiler.model import STAGES, STEP_EPOCH_FIRST
from profiler.run.reader import Run
from tests.runs import CPU_STAGES_MS, STAGE_MS, make_run


def facts_of(path, **planned):
    with Run.open(make_run(path, **planned)) as run:
        return gather(run, training_process(run))


WALLS = st.lists(st.floats(1e3, 1e10), min_size=1, max_size=60).map(np.array)


@given(WALLS)
def test_no_percentiles_below_ten_steps(wall):
    found = spread(wall)
    assert (found.p5 is None) == (found.p95 is None) == (len(wall) < 10)
    assert found.low <= found.median <= found.high
    if found.p5 is not None:
        assert found.low <= found.p5 <= found.median <= found.p95 <= found.high
    assert found.median == pytest.approx(float(np.median(wall)))


def test_throughput_is_total_work_over_total_time():
    samples, walls = np.array([10.0, 10.0, 10.0]), np.array([1e9, 1e9, 4e9])
    assert rate(samples, float(walls.sum())) == pytest.approx(5.0)
    assert rate(np.array([10.0, np.nan]), 1e9) is None
    assert rate(np.empty(0), 1e9) is None


def test_stages_sum_to_the_step(tmp_path):
    summary = facts_of(tmp_path / "a.stepscope", stages={**STAGE_MS, "data": lambda k: 36.2 + k % 7}).summary
    assert sum(summary.stages[s] for s in STAGES) == pytest.approx(summary.step_ns)
    assert summary.steady == 59 and summary.total == 60


def test_a_wait_under_a_busy_queue_is_not_exposed(tmp_path):
    device = {"h2d": 2.6, "forward": 5.1, "backward": 9.9, "optimizer": 1.2}
    facts = facts_of(tmp_path / "a.stepscope", device=device, lag={"data": 5.3}, gpu={"gpu.util": 0.31})
    assert facts.on_device and facts.device.name == "NVIDIA H200"
    assert facts.summary.exposed == pytest.approx(30.9e6)
    cpu = facts_of(tmp_path / "b.stepscope")
    assert not cpu.on_device and cpu.summary.exposed == pytest.approx(36.2e6)


def test_a_run_on_a_gpu_without_lag_knows_no_exposed_wait(tmp_path):
    told = {"torch": {"device_count": 1}}
    facts = facts_of(tmp_path / "a.stepscope", properties=told, gpu={"gpu.util": 0.3})
    assert facts.on_device and facts.summary.exposed is None and not facts.estimate.measured


def test_epoch_starts_are_apart_from_the_run_s_own(tmp_path):
    flags = lambda k: STEP_EPOCH_FIRST if k % 30 == 0 else 0  # noqa: E731
    data = lambda k: 8000.0 if k == 0 else 500.0 if k % 30 == 0 else 2.0  # noqa: E731
    facts = facts_of(tmp_path / "a.stepscope", steps=120, flags=flags, stages={**CPU_STAGES_MS, "data": data})
    epochs = facts.summary.epochs
    assert (epochs.later, epochs.first_wait_ns, epochs.later_wait_ns) == (3, 8e9, 5e8)
    assert epochs.excess_ns == pytest.approx(3 * 498e6)
    assert facts.summary.spread.high < 60e6


def test_a_rare_stall_does_not_move_the_stages(tmp_path):
    data = lambda k: 5000.0 if k == 70 else 2.0  # noqa: E731
    facts = facts_of(tmp_path / "a.stepscope", steps=100, stages={**CPU_STAGES_MS, "data": data})
    summary = facts.summary
    assert summary.stages["data"] == pytest.approx(2e6)
    assert summary.stalls.sum() == 1 and summary.stall_ns == pytest.approx(4998e6)
    assert summary.spread.mean > 1.5 * summary.spread.median
    assert summary.throughput < 0.7 * 64 / summary.step_ns * 1e9
