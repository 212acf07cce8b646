"""The verdict on planned runs, and its JSON form."""

import json

import pytest

from profiler.cli._common import plain
from profiler.model import STAGES, STEP_EVALUATION
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import CPU_STAGES_MS, MS, STAGE_MS, START_NS, make_run, run_meta

DEVICE = {"h2d": 2.6, "forward": 5.1, "backward": 9.9, "optimizer": 1.2}
LAG = {"data": 5.3, "h2d": 0.0, "forward": 0.0, "backward": 0.2, "optimizer": 5.6}
STORY = {"steps": 200, "data_cpu": 1.0, "device": DEVICE, "lag": LAG, "cores": 16,
         "gpu": {"gpu.util": 0.31, "gpu.throttle": 0x1}, "host": {"target.cpu": 1.0}}


def told(path, *window, **planned):
    with Run.open(make_run(path, **planned)) as run:
        return diagnose(run, *window)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


def test_the_story_of_the_mockups(path):
    found = told(path, **STORY)
    assert found.verdict == "input_bound" and found.decision.confidence == "medium"
    assert found.headline == "36.2 ms of 52.3 ms per step wait for data, 30.9 ms of it exposed".replace(
        " ms", "\u00a0ms")
    first = found.findings[0]
    assert first.rule == "input_bound" and first.prediction.low < 52.3 / 21.4 < first.prediction.high


def test_the_json_form_of_the_design(path):
    found = told(path, **STORY).to_json()
    text = json.dumps(plain(found), allow_nan=False)
    assert json.loads(text) == plain(found)
    assert found["schema"] == 1 and found["steps"]["count"] == 199 and found["steps"]["rule"] == "probe"
    assert set(found["step_ms"]) >= {"median", "p5", "p95", "range"}
    assert list(found["stages_ms"]) == list(STAGES)
    assert sum(found["stages_ms"].values()) == pytest.approx(found["step_ms"]["usual"])
    assert found["throughput"] == {"value": pytest.approx(64 / 0.0523), "unit": "samples/s"}
    assert found["partition_ms"] is found["what_if"] is found["replay_error"] is found["ranks"] is None
    assert found["device"]["name"] == "NVIDIA H200"
    finding = found["findings"][0]
    assert set(finding) >= {"rule", "title", "severity", "evidence", "counter_evidence", "remedy",
                            "prediction"}
    assert finding["remedy"]["setting"] == "num_workers" and finding["remedy"]["from"] == 0
    assert set(finding["evidence"][0]) == {"text", "value", "unit", "source"}


@pytest.mark.parametrize(("stages", "verdict"), [
    ({**CPU_STAGES_MS, "data": 40.0}, "input_bound"),
    ({**CPU_STAGES_MS, "data": 0.1}, "compute_bound"),
    ({**CPU_STAGES_MS, "data": 0.1, "other": 30.0}, "host_bound"),
])
def test_on_a_cpu_run_the_cpu_is_the_device(path, stages, verdict):
    found = told(path, stages=stages)
    assert found.verdict == verdict and found.decision.confidence == "medium"
    assert found.to_json()["device"]["kind"] == "cpu"


def test_both_of_two_like_gains_are_named(path):
    found = told(path, stages={**CPU_STAGES_MS, "data": 40.0, "other": 39.0})
    assert found.verdict == "input_bound" and found.decision.also == ("host_bound",)


def test_a_device_that_is_always_behind_is_compute_bound(path):
    stages = {"data": 1, "h2d": 1, "forward": 5, "backward": 6, "optimizer": 2, "other": 85}
    device = {"h2d": 1, "forward": 33, "backward": 60, "optimizer": 5}
    lag = {"data": 90, "h2d": 90, "forward": 90, "backward": 118, "optimizer": 172}
    found = told(path, stages=stages, device=device, lag=lag, gpu={"gpu.util": 0.98})
    assert found.verdict == "compute_bound"


def test_a_device_that_keeps_up_is_host_bound(path):
    stages = {"data": 0.2, "h2d": 0.2, "forward": 40, "backward": 50, "optimizer": 8}
    device = {"h2d": 0.1, "forward": 40, "backward": 50, "optimizer": 8}
    found = told(path, stages=stages, device=device, lag=dict.fromkeys(STAGES[:5], 0.02),
                 gpu={"gpu.util": 0.08})
    assert found.verdict == "host_bound"


def test_long_copies_are_transfer_bound(path):
    stages = {"data": 1, "h2d": 60, "forward": 5, "backward": 5, "optimizer": 29}
    device = {"h2d": 58, "forward": 10, "backward": 20, "optimizer": 9}
    lag = {"data": 0, "h2d": 0, "forward": 0, "backward": 5, "optimizer": 20}
    found = told(path, stages=stages, device=device, lag=lag, gpu={"gpu.util": 0.4})
    assert found.verdict == "transfer_bound"


def test_on_a_gpu_without_device_times_and_utilization_nothing_is_claimed(path):
    found = told(path, properties={"torch": {"device_count": 1}})
    assert found.verdict == "unknown" and "neither device times nor utilization" in found.decision.reason
    assert dict(found.lacks)["Host work"]


def test_with_utilization_alone_the_confidence_is_low(path):
    found = told(path, properties={"torch": {"device_count": 1}}, gpu={"gpu.util": 0.2})
    assert found.verdict == "input_bound" and found.decision.confidence == "low"


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_fewer_than_three_steady_steps_carry_no_claim(path, steps):
    found = told(path, steps=steps)
    assert found.verdict == "unknown" and found.decision.reason
    assert not any(f.remedy for f in found.findings)
    json.dumps(plain(found.to_json()), allow_nan=False)


def test_a_few_steps_give_a_range_and_low_confidence(path):
    found = told(path, steps=8, stages={**CPU_STAGES_MS, "data": 40.0})
    assert found.verdict == "input_bound" and found.decision.confidence == "low"
    assert found.to_json()["step_ms"]["p5"] is None
    assert any("range instead of percentiles" in note for note in found.notes)


def test_a_run_that_never_trains_is_judged_as_inference(path):
    found = told(path, flags=lambda k: STEP_EVALUATION)
    assert found.verdict == "input_bound" and "No step trains: the figures are of inference" in found.notes
    steps = found.to_json()["steps"]
    assert steps["kind"] == "evaluation" and steps["total"] == 60 >= steps["count"]


def test_the_evaluation_of_a_run_that_trains_carries_no_verdict(path):
    with Run.open(make_run(path, steps=100, flags=lambda k: STEP_EVALUATION if k >= 50 else 0)) as run:
        end = START_NS + 500 * MS + round(50.5 * sum(STAGE_MS.values()) * MS)
        found = diagnose(run, end)
    assert found.verdict == "unknown" and "only evaluation" in found.decision.reason
    assert found.to_json()["stages_ms"]["data"] == pytest.approx(STAGE_MS["data"])


@pytest.mark.parametrize(("other", "verdict"),
                         [(5.0, "compute_bound"), (8.5, "unknown"), (12.0, "host_bound")])
def test_on_the_cpu_a_little_outside_the_stages_is_not_called_host_work(path, other, verdict):
    stages = {"data": 0.5, "forward": 19.0, "backward": 28.0, "optimizer": 2.0, "other": other}
    found = told(path, stages=stages)
    assert found.verdict == verdict
    assert any(f.rule == "host_bound" for f in found.findings) == (verdict == "host_bound")


def test_a_forward_that_was_not_seen_is_not_called_host_work(path):
    found = told(path, stages={"data": 1.0, "backward": 30.0, "optimizer": 3.0, "other": 20.0})
    assert found.verdict == "unknown" and "no call of a model was seen" in found.decision.reason
    assert "no call of a model was seen" in dict(found.lacks)["Host work"]


def test_without_a_probe_the_cause_is_told(path):
    writer = RunWriter.create(path, run_meta())
    writer.event(START_NS, "probe_absent", "warning", "Process 7 started with -I, which skips the probe.")
    writer.finish("finished", START_NS)
    with Run.open(path) as run:
        found = diagnose(run)
    assert found.verdict == "unknown" and found.decision.reason == (
        "Process 7 started with -I, which skips the probe")


def test_bursts_of_workers_do_not_hide_the_wait(path):
    data = lambda k: 120.0 if k % 4 == 0 else 0.1  # noqa: E731
    found = told(path, steps=200, workers=4, stages={**CPU_STAGES_MS, "data": data},
                 host={"target.cpu": 1.5, "target.workers_cpu": 0.4})
    assert found.verdict == "input_bound"
    assert found.facts.summary.stages["data"] == pytest.approx(30e6, rel=0.05)
    assert any(note.startswith("Mean and median differ") for note in found.notes)


def test_ranks_are_listed_and_their_throughput_added(path):
    found = told(path, ranks=2, steps=100).to_json()
    assert found["notes"][0] == "Of 2 loops rank 0 is shown, whose own bottleneck costs most"
    assert [r["rank"] for r in found["ranks"]] == [0, 1]
    assert found["throughput"]["value"] == pytest.approx(2 * 64 / 0.0523)


def test_the_live_verdict_is_of_its_window(path):
    data = lambda k: 1.0 if k < 100 else 60.0  # noqa: E731
    half = START_NS + 500 * MS + 100 * 55 * MS
    stages = {**CPU_STAGES_MS, "data": data}
    with Run.open(make_run(path, steps=200, stages=stages, state="recording")) as run:
        assert diagnose(run, None, half).verdict == "compute_bound"
        late = diagnose(run, half)
        assert late.verdict == "input_bound" and late.facts.summary.stages["data"] > 55 * MS
        assert diagnose(run, half + 10**12).verdict == "unknown"


def test_a_run_whose_recorder_died_says_so(path):
    assert any("ended early" in note for note in told(path, state="partial").notes)


@pytest.mark.parametrize(("code", "signal", "said"), [
    (3, None, "The command ended with status 3"), (139, "SIGSEGV", "The command was ended by SIGSEGV")])
def test_a_command_that_failed_is_no_recording_that_broke_off(path, code, signal, said):
    meta = {"exit": {"code": code, "signal": signal, "reason": "ended"}}
    notes = told(path, state="partial", meta=meta).notes
    assert any(note.startswith(said) for note in notes) and not any("ended early" in note for note in notes)
