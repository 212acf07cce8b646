"""Every rule keeps to the protocol, and tells what it lacks."""

import json

import pytest

from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.rules.base import Outcome, rules
from profiler.run.reader import Run
from profiler.run.results import append_result
from profiler.run.writer import RunWriter
from tests.runs import CPU_STAGES_MS, START_NS, make_run, run_meta

RULES = {rule.name: rule for rule in rules()}


def facts_of(path):
    with Run.open(path) as run:
        return gather(run, training_process(run))


@pytest.fixture
def empty(tmp_path):
    RunWriter.create(tmp_path / "empty.stepscope", run_meta()).finish("finished", START_NS)
    return facts_of(tmp_path / "empty.stepscope")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_name_a_title_and_says_what_it_lacks(name, empty):
    rule = RULES[name]
    assert rule.title and rule.title[0].isupper() and rule.check.__doc__
    outcome = rule.check(empty)
    assert isinstance(outcome, Outcome)
    assert outcome.lacks and not outcome.findings and not outcome.ruled_out


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("data", [0.0, 3.0, 300.0])
def test_a_rule_answers_in_one_way_and_findings_are_whole(name, data, tmp_path):
    facts = facts_of(make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": data}, data_cpu=0.5,
                              host={"target.cpu": 1.0}))
    outcome = RULES[name].check(facts)
    assert bool(outcome.findings) + bool(outcome.ruled_out) + bool(outcome.lacks) == 1
    for finding in outcome.findings:
        assert finding.rule == name and finding.title and finding.evidence
        assert finding.severity in ("info", "warning", "error")
        assert finding.remedy or finding.advice
        json.dumps(finding.to_json(), allow_nan=False)
        if finding.prediction:
            assert finding.remedy and finding.prediction.low <= finding.prediction.high


def finding(name, path):
    outcome = RULES[name].check(facts_of(path))
    assert len(outcome.findings) == 1, outcome
    return outcome.findings[0]


def test_workers_are_advised_with_a_prediction_and_the_line(tmp_path):
    found = finding("input_bound", make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 200.0},
                                            data_cpu=2.0, host={"target.cpu": 1.1}))
    assert found.remedy.to_json() == {"setting": "num_workers", "from": 0, "to": 4}
    assert found.prediction.low > 2 and found.prediction.high / found.prediction.low <= 1.3
    assert found.site == "train.py:57"


def test_no_workers_are_advised_on_their_start_up(tmp_path):
    first = lambda k: 9000.0 if k == 0 else 0.2  # noqa: E731
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": first}, workers=2)
    assert RULES["input_bound"].check(facts_of(path)).ruled_out


def test_workers_that_fill_the_cores_are_no_remedy(tmp_path):
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 200.0}, workers=2, cores=2,
                    host={"target.cpu": 2.0, "target.workers_cpu": 1.9})
    found = finding("input_bound", path)
    assert found.remedy is None and found.prediction is None and "cheaper" in found.advice


def test_workers_are_no_remedy_where_compute_fills_the_cores(tmp_path):
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 12.0}, data_cpu=11.9, cores=2,
                    host={"target.cpu": 1.8, "host.cpu": 0.95})
    found = finding("input_bound", path)
    assert found.remedy is None and "cores are busy" in found.advice


def test_a_short_wait_does_not_call_idle_cores_busy(tmp_path):
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 2.75}, data_cpu=0.6, cores=8,
                    host={"target.cpu": 1.0, "host.cpu": 0.2})
    found = finding("input_bound", path)
    assert found.remedy is None and "less than 5 %" in found.advice


def test_a_measured_ceiling_of_the_loader_caps_what_workers_are_said_to_bring(tmp_path):
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 200.0}, data_cpu=10.0,
                    host={"target.cpu": 0.4, "host.cpu": 0.1})
    free = finding("input_bound", path)
    workers = free.remedy.after
    append_result(path, "ceilings", {"loader_ms": {str(workers): 100.0, "16": 100.0, "odd": 1, "3": "x",
                                                    "9" * 5000: 1.0}})
    capped = finding("input_bound", path)
    assert free.prediction.speedup > 4 and capped.prediction.high == pytest.approx(254 / 100)
    told = {e.text: e.value for e in capped.counter_evidence}
    assert 100.0 in told.values() and not any("storage can deliver" in text for text in told)


def test_a_machine_that_others_use_is_counter_evidence(tmp_path):
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 200.0}, data_cpu=2.0, cores=4,
                    host={"target.cpu": 1.0, "host.cpu": 0.95})
    found = finding("input_bound", path)
    assert found.prediction.high / found.prediction.low > 1.3
    assert any(e.value == pytest.approx(0.7) for e in found.counter_evidence)


def test_a_loop_without_a_loader_gets_no_number(tmp_path):
    path = make_run(tmp_path / "a.stepscope", stages={**CPU_STAGES_MS, "data": 200.0}, workers=None)
    found = finding("input_bound", path)
    assert found.remedy is None and "DataLoader" in found.advice


def test_pinning_is_at_most_the_copy(tmp_path):
    stages = {"data": 1, "h2d": 30, "forward": 20, "backward": 30, "optimizer": 5}
    told = {"stages": stages, "device": {**stages, "h2d": 28}, "lag": {"data": 0.1}, "gpu": {"gpu.util": 0.6}}
    found = finding("transfer_bound", make_run(tmp_path / "a.stepscope", **told))
    assert found.remedy.setting == "pin_memory" and found.prediction.at_most
    assert found.prediction.high == pytest.approx(86 / 58, rel=0.01)
    pinned = make_run(tmp_path / "b.stepscope", loader={"pin_memory": True}, **told)
    assert finding("transfer_bound", pinned).remedy is None


def test_epoch_starts_name_persistent_workers(tmp_path):
    path = make_run(tmp_path / "a.stepscope", steps=120, workers=2, flags=lambda k: 2 if k % 30 == 0 else 0,
                    stages={**CPU_STAGES_MS, "data": lambda k: 500.0 if k % 30 == 0 else 1.0})
    found = finding("epoch_start", path)
    assert found.remedy.to_json() == {"setting": "persistent_workers", "from": False, "to": True}
    assert found.prediction.at_most
    assert found.prediction.high == pytest.approx((120 * 55 + 4 * 499) / (120 * 55 + 499), rel=0.001)
    lasting = make_run(tmp_path / "b.stepscope", steps=120, workers=2, loader={"persistent_workers": True},
                       flags=lambda k: 2 if k % 30 == 0 else 0,
                       stages={**CPU_STAGES_MS, "data": lambda k: 500.0 if k % 30 == 0 else 1.0})
    assert finding("epoch_start", lasting).remedy is None


def test_uneven_batches_are_told_from_starved_workers(tmp_path):
    uneven = make_run(tmp_path / "a.stepscope", steps=200, workers=2,
                      stages={**CPU_STAGES_MS, "data": lambda k: 60.0 if k % 11 == 0 else 0.1})
    assert finding("prefetch", uneven).remedy.to_json() == {"setting": "prefetch_factor", "from": 2, "to": 4}
    starved = make_run(tmp_path / "b.stepscope", steps=200, workers=4,
                       stages={**CPU_STAGES_MS, "data": lambda k: 60.0 if k % 4 == 0 else 0.1})
    assert RULES["prefetch"].check(facts_of(starved)).ruled_out


@pytest.mark.parametrize("workers", [0, 2])
def test_only_workers_explain_bursts(tmp_path, workers):
    path = make_run(tmp_path / "a.stepscope", workers=workers,
                    stages={**CPU_STAGES_MS, "forward": lambda k: 20.0 + 60 * (k % 2)})
    assert ("workers" in finding("stalls", path).advice) == bool(workers)


def test_throttling_is_told_with_its_reason(tmp_path):
    gpu = {"gpu.throttle": lambda k: 0x20 if 20 <= k < 40 else 0x1, "gpu.util": 0.9}
    told = {"steps": 200, "lag": {"data": 5.0}}
    path = make_run(tmp_path / "a.stepscope", gpu=gpu, **told)
    found = finding("throttling", path)
    assert found.title == "Throttled: thermal (software)" and found.severity == "warning"
    assert found.evidence[0].value == pytest.approx(2.0)
    capped = make_run(tmp_path / "b.stepscope", gpu={**gpu, "gpu.throttle": 0x4}, **told)
    assert finding("throttling", capped).severity == "info"


def test_others_on_the_gpu(tmp_path):
    gpu = {"gpu.other_processes": 2, "gpu.util": 0.5}
    path = make_run(tmp_path / "a.stepscope", gpu=gpu, lag={"data": 1})
    assert finding("other_processes", path).severity == "warning"


@pytest.mark.parametrize("name", RULES)
def test_steps_of_no_length_are_no_accident(name, tmp_path):
    """A clock that stands still: nothing is divided by the length of a step."""
    still = make_run(tmp_path / "a.stepscope", stages=dict.fromkeys(CPU_STAGES_MS, 0.0), data_cpu=0.0)
    assert isinstance(RULES[name].check(facts_of(still)), Outcome)
