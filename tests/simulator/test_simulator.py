"""The simulator itself, on programs small enough to follow by hand, and the engine held against it."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tests.simulator import actions as A
from tests.simulator.actions import Action, Copy, Kernel, Loader, Program
from tests.simulator.check import Outcome, check, quantile
from tests.simulator.draw import KINDS
from tests.simulator.kinds import LIKE
from tests.simulator.machine import run
from tests.simulator.make import make
from tests.simulator.scenarios import SCENARIOS, changed
from tests.simulator.truth import Partition, steady, verdicts

KERNEL = Kernel("k", 1, 32, 16, 0)
END = Action(A.WORK, 1_000, role=A.PAUSE)


def launch(ns: int, latency: int, run_ns: int, gap: int = 0) -> Action:
    return Action(A.LAUNCH, ns, "cudaLaunchKernel", A.OPERATOR, 7, latency, gap, run_ns, KERNEL)


def program(*step: Action, count: int = 5, **more: object) -> Program:
    return Program([[*step, END]] * count, 0, **more)  # type: ignore[arg-type]


def classes(job: Program, k: int = 1) -> dict[str, int]:
    timeline = run(job, record=True)
    return Partition(timeline, 0).of(timeline.step_start[k], timeline.step_end[k])[0]


def test_an_idle_gap_is_cut_at_the_call() -> None:
    """Python, then a launch of 4 us whose kernel starts 10 us after its start, then a wait."""
    job = program(
        Action(A.WORK, 50_000, role=A.PYTHON),
        launch(4_000, 10_000, 20_000),
        Action(A.SYNC, 3_000, "cudaDeviceSynchronize", stream=-1, latency=2_000, info=True),
    )
    assert classes(job) == {"compute": 20_000, "host": 54_000, "queued": 6_000, "sync": 2_000}


def test_a_pageable_copy_stages_and_blocks() -> None:
    copy = Copy(1000, "h2d", "pageable", "stage", 5_000)
    job = program(
        Action(A.COPY, 8_000, "cudaMemcpyAsync", A.BATCH, 7, 20_000, 0, 100_000, copy),
        Action(A.SYNC, 3_000, "cudaStreamSynchronize", A.BATCH, 7, 4_000, info=True),
    )
    assert classes(job) == {"transfer_host": 20_000, "transfer_exposed": 100_000, "sync": 4_000}


def test_named_work_is_not_the_host() -> None:
    job = program(
        launch(4_000, 4_000, 10_000),
        Action(A.SYNC, 1_000, "s", stream=7, info=True),
        Action(A.PUSH, 0, "log", A.NAMED, info="user_annotation"),
        Action(A.WORK, 30_000, role=A.NAMED),
        Action(A.POP, 0, "log", A.NAMED),
    )
    assert classes(job)["other:log"] == 30_000


def test_the_launch_queue_holds_the_host_back() -> None:
    """Ten kernels of 100 us, room for four: the step ends when the sixth has begun, not at once."""
    step = [launch(1_000, 5_000, 100_000) for _ in range(10)]
    timeline = run(program(*step, queue=4), record=True)
    begun = sorted(a.start for a in timeline.activities)
    assert timeline.step_end[0] == begun[5] + 1_000
    assert run(program(*step, queue=1000)).step_end[0] - timeline.step_start[0] == 10_000


def test_workers_deliver_at_their_rate() -> None:
    """Two workers of 10 ms a batch feed a loop of 1 ms: 5 ms a step, in bursts of two."""
    fetch = Action(A.FETCH, 50_000, "enumerate(DataLoader)", A.LOADER, run=10_000_000)
    job = program(fetch, Action(A.WORK, 1_000_000), count=40, loader=Loader(2, 2))
    ends = run(job).step_end
    assert (ends[-1] - ends[-21]) / 20 == pytest.approx(5_000_000, rel=0.01)


def test_a_stream_waits_for_an_event() -> None:
    other = launch(2_000, 3_000, 50_000)._replace(stream=20)
    job = program(
        other,
        Action(A.RECORD, 1_000, "cudaEventRecord", stream=20, info="e"),
        Action(A.WAIT, 1_000, "cudaStreamWaitEvent", stream=7, info="e"),
        launch(2_000, 3_000, 10_000, gap=700),
        Action(A.SYNC, 1_000, "s", stream=-1, info=True),
    )
    activities = run(job, record=True).activities
    assert activities[1].start == activities[0].end + 700


@pytest.mark.parametrize("name, faster", [("no_sync", True), ("no_transfer", False), ("compute_half", True)])
def test_a_scenario_removes_its_own_cost_only(name: str, faster: bool) -> None:
    job = program(
        launch(4_000, 5_000, 50_000),
        Action(A.WORK, 100_000, role=A.PYTHON),
        launch(4_000, 5_000, 50_000),
        Action(A.SYNC, 1_000, "s", stream=-1, info=True),
    )
    before = steady(run(job), 0).step
    after = steady(run(changed(job, SCENARIOS[name][0])), 0).step
    assert (after < before) == faster


def test_verdict_by_the_largest_gain() -> None:
    assert verdicts({"no_sync": 1.3, "no_input_wait": 1.1}, 0.7)[1] == ["sync_bound"]
    assert verdicts({"no_sync": 1.3, "no_input_wait": 1.28}, 0.7)[1] == ["sync_bound", "input_bound"]
    assert verdicts({"no_sync": 1.02}, 0.9)[1] == ["compute_bound"]
    assert verdicts({"no_sync": 1.02}, 0.5)[1] == ["unknown"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What the engine makes of one small trace of each kind, by kind."""
    folder = tmp_path_factory.mktemp("simulated")
    truths = [make(seed, folder, size=0.15, predict=kind in LIKE) for seed, kind in enumerate(KINDS)]
    return {truth["kind"]: check(folder / truth["file"], truth) for truth in truths}


@pytest.mark.parametrize("kind", [kind.__name__ for kind in KINDS])
def test_the_engine_finds_steps_and_partition(kind: str, engine: dict[str, Outcome]) -> None:
    """To the microsecond where the file has whole ones."""
    assert engine[kind].steps_agree
    assert engine[kind].partition_error < (0.005 if engine[kind].whole else 1e-6)


@pytest.mark.parametrize("kind", [kind.__name__ for kind in LIKE])
def test_the_engine_finds_the_verdict(kind: str, engine: dict[str, Outcome]) -> None:
    assert engine[kind].verdict in engine[kind].accept


def test_the_engine_predicts(engine: dict[str, Outcome]) -> None:
    """Pooled over jobs like those of the reference data."""
    errors = [error for kind in LIKE for error, _ in engine[kind.__name__].errors]
    assert len(errors) > 10
    assert median(errors) < 0.01
    assert quantile(errors, 0.95) < 0.05


@pytest.mark.slow
def test_the_engine_on_every_kind_at_full_size(tmp_path: Path) -> None:
    """The bounds of the reference data hold on other traces, the harder ones among them."""
    results = []
    for seed in range(10_000, 10_000 + 2 * len(KINDS)):
        truth = make(seed, tmp_path)
        results.append(check(tmp_path / truth["file"], truth))
    errors = [error for result in results for error, _ in result.errors]
    assert median(result.partition_error for result in results) < 0.001
    assert quantile([result.partition_error for result in results], 0.95) < 0.005
    assert [r.file for r in results if r.verdict not in r.accept] == []
    assert median(errors) < 0.01
    assert quantile(errors, 0.95) < 0.05
