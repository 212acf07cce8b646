"""Why the input is slow: decoding, storage, hand-over, too many workers, their start."""

import pytest

from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.runs import make_run

LIGHT_MS = {"data": 48.0, "forward": 1.0, "backward": 2.0, "optimizer": 0.4, "other": 0.2}  # 93 % wait


def finding(path, data=48.0, **planned):
    with Run.open(make_run(path, steps=100, stages={**LIGHT_MS, "data": data},
                           **{"cores": 2, **planned})) as run:
        found = diagnose(run)
    (finding,) = [f for f in found.findings if f.rule == "input_bound"]
    assert found.verdict == "input_bound"
    return finding


def told(finding):
    return {e.text: e.value for e in finding.evidence}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


def test_waiting_work_takes_more_workers_than_cores(path):
    found = finding(path, data_cpu=2.0, host={"target.cpu": 0.1})
    assert found.title == "Data wait: workers 0 \u2192 4 (storage)"
    assert found.prediction.low > 3
    share = told(found)["Of the wait the loop's thread works, or has no core"]
    assert share == pytest.approx(2 / 48, abs=0.01)


def test_computing_work_takes_as_many_as_there_are_cores(path):
    found = finding(path, data_cpu=47.5, host={"target.cpu": 1.0})
    assert found.title == "Data wait: workers 0 \u2192 2 (decoding)"
    assert found.prediction.high < 2.4


@pytest.mark.parametrize(("workers", "cpu", "waiting", "title", "advice"), [
    (2, 0.08, 0.1, "Data wait: workers 2 \u2192 4 (storage)", ""),
    (4, 0.2, 0.2, "Data wait: workers 4 \u2192 8 (storage)", ""),
    (8, 0.3, 0.4, "The loop waits for data (storage)", "8 workers on 2 cores are as many as help"),
    (1, 0.97, 0.0, "Data wait: workers 1 \u2192 2 (decoding)", ""),
    (2, 0.4, 1.6, "The loop waits for data (decoding)", "2 workers on 2 cores are as many as help"),
    (8, 1.9, 6.0, "The loop waits for data (decoding)", "8 workers on 2 cores share them: 2 would do")])
def test_what_is_advised_where_there_are_workers(path, workers, cpu, waiting, title, advice):
    host = {"target.cpu": cpu + 0.1, "target.workers_cpu": cpu, "target.waiting": waiting}
    found = finding(path, workers=workers, host=host)
    assert found.title == title and found.advice.startswith(advice) and bool(found.advice) == bool(advice)


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("work", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("workers", [0, 1, 2, 8])
def test_the_suggestion_never_exceeds_what_cores_and_kind_of_work_allow(path, cores, work, workers):
    """`work`: the share of its time in which whoever makes a batch computes; the rest it waits."""
    cpu = min(workers * work, cores - 0.07) if workers else 0.0
    host = {"target.cpu": cpu + 0.07 if workers else (48 * work + 3.6) / 51.6, "target.workers_cpu": cpu,
            "target.waiting": workers * work - cpu}
    found = finding(path, data_cpu=48 * work, cores=cores, workers=workers, host=host)
    if found.remedy is None:
        assert found.advice
        return
    assert workers < found.remedy.after <= (cores if work > 0.7 else min(4 * cores, cores / work))
    assert found.prediction.high <= 1.25 * max(found.remedy.after / max(1, workers), 1)


def test_one_worker_is_spoken_of_as_one(path):
    host = {"target.cpu": 1.0, "target.workers_cpu": 0.93}
    assert finding(path, workers=1, cores=1, host=host).advice.startswith("1 worker on 1 core is as many")


BATCHES = {"asked": 20, "ready": 20, "ready_ns": 5_500_000, "tensor_bytes": 4 << 20, "array_bytes": 0}


def test_batches_that_are_ready_are_handed_over_for_nothing(path):
    found = finding(path, data=6.0, workers=2, properties={"batches": BATCHES},
                    host={"target.cpu": 0.9, "target.workers_cpu": 0.1})
    assert found.title == "Data wait: workers 2 \u2192 0 (hand-over)"
    assert found.prediction.low > 1
    assert told(found)["Fetches whose batch was ready"] == 1.0
    assert told(found)["Tensors of a batch, handed over in shared memory"] == 4


def test_where_workers_have_work_large_batches_get_other_advice(path):
    batches = {**BATCHES, "tensor_bytes": 0, "array_bytes": 2 << 20}
    found = finding(path, data=6.0, workers=2, properties={"batches": batches},
                    host={"target.cpu": 1.9, "target.workers_cpu": 1.0})
    assert found.remedy is None and found.title == "The loop waits for data (hand-over)"
    assert "tensors instead of arrays" in found.advice
    assert told(found)["Arrays of a batch, copied through a pipe"] == 2


def test_no_workers_are_advised_for_what_costs_more_to_hand_over(path):
    made = {"data_cpu": 5.9, "host": {"target.cpu": 0.9}}
    light = {**BATCHES, "asked": 0, "ready": 0}
    arrays = finding(path, data=6.0, properties={"batches": {**light, "array_bytes": 10 << 20}}, **made)
    tensors = finding(path.with_name("b.stepscope"), data=6.0, properties={"batches": light}, **made)
    assert arrays.remedy is None and tensors.remedy.after > 0


@pytest.mark.parametrize("changed", [
    {"ready": 10}, {"asked": 3, "ready": 3}, {"ready_ns": 1_000_000}, {"ready_ns": "soon"}])
def test_without_ready_batches_that_take_long_it_is_no_hand_over(path, changed):
    found = finding(path, data=6.0, workers=2, properties={"batches": {**BATCHES, **changed}},
                    host={"target.cpu": 0.9, "target.workers_cpu": 0.1})
    assert "hand-over" not in found.title


def test_a_slow_first_batch_is_evidence_and_no_more(path):
    data = lambda k: 6000.0 if k == 0 else 48.0  # noqa: E731
    found = finding(path, data=data, workers=4, host={"target.cpu": 0.3, "target.workers_cpu": 0.2})
    assert told(found)["The run's first batch, with the start of the workers"] == 6000.0
    assert found.cost_ms == pytest.approx(48.0)


def test_ready_batches_are_not_uneven_ones(path):
    data = lambda k: 60.0 if k % 11 == 0 else 0.1  # noqa: E731
    planned = {"steps": 200, "workers": 2, "stages": {**LIGHT_MS, "data": data, "forward": 30.0}}
    batches = {"batches": {**BATCHES, "ready_ns": 4_000_000}}
    with Run.open(make_run(path, properties=batches, **planned)) as run:
        assert not any(f.rule == "prefetch" for f in diagnose(run).findings)
