from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from profiler.errors import TargetError, UsageError
from profiler.experiments import verify as module
from profiler.experiments.arm import LATE, Arm
from profiler.experiments.change import Tried
from profiler.experiments.plan import Plan, make_plan
from profiler.experiments.program import Program
from profiler.experiments.verify import Listener, check_applied, verify
from profiler.model import STAGES
from profiler.rules.base import Finding, Prediction, Remedy
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.experiments.spooling import recorded
from tests.record.running import environment
from tests.runs import make_run


def arm(step_ms: float, *marks: str, loss: float = 1.0, batch: float = 8.0,
        latency_ms: float | None = None) -> Arm:
    stages = dict.fromkeys(STAGES, 0.0) | {"data": step_ms - 5, "forward": 5.0}
    return Arm(step_ms, step_ms, 50, stages, 1e3 * batch / step_ms, marks, {"num_workers": 4},
               {"step 60": loss}, batch=batch, latency_ms=latency_ms)


def plan(pairs: int = 5, setting: str = "num_workers") -> Plan:
    remedy = Remedy(setting, 0, 4)
    finding = Finding("input_bound", "Data wait", "error", remedy=remedy,
                      prediction=Prediction("no_input_wait", 2.0, 1.8, 2.2))
    return Plan(finding, remedy, Program(Path(), command=("x",), rate_hz=10.0), 60, pairs, 0.05, 2.0)


class Recorder:
    """Stands for recordings: gives planned arms and remembers the order."""

    def __init__(self, a: list[Any], b: list[Any]) -> None:
        self.arms = {"a": iter(a), "b": iter(b)}
        self.order = ""

    def __call__(self, plan: Plan, name: str, output: Path, tick: Any) -> Arm:
        self.order += name
        tick(1.0)
        value = next(self.arms[name])
        if isinstance(value, BaseException):
            raise value
        assert isinstance(value, Arm)
        return value


def run(monkeypatch: pytest.MonkeyPatch, recorder: Recorder, pairs: int = 5) -> dict[str, Any]:
    monkeypatch.setattr(module, "_record", recorder)
    return verify(plan(pairs), Path(), Listener()).to_json()


def endless(value: Arm) -> Iterator[Arm]:
    while True:
        yield value


def test_pairs_alternate_and_end_when_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder([arm(40)] * 9, [arm(20)] * 9)
    told = run(monkeypatch, recorder)
    assert recorder.order == "abbaab"
    assert [pair["order"] for pair in told["pairs"]] == ["ab", "ba", "ab"]
    assert told["outcome"] == "improvement" and told["score"] == "hit"
    assert told["ratio"] == {"median": 2.0, "low": 2.0, "high": 2.0, "pairs": 3, "coverage": 0.75}
    assert told["step_ms"] == {"a": 40.0, "b": 20.0}
    assert told["change_ms"]["step"] == -20.0 == sum(v for k, v in told["change_ms"].items() if k != "step")
    assert told["loss"]["state"] == "agrees"


def test_undecided_goes_on_to_the_last_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(20)] * 9, [arm(20)] * 9), pairs=4)
    assert len(told["pairs"]) == 4
    assert told["outcome"] == "no difference shown" and told["score"] == "miss"


def test_a_marked_run_is_left_out_visibly_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40)] * 9, [arm(20), arm(400, "throttled"), *[arm(20)] * 7]))
    assert len(told["pairs"]) == 4 and told["ratio"]["pairs"] == 3
    assert told["left_out"] == [{"pair": 2, "side": "b", "why": ["throttled"]}]
    assert [pair["counts"] for pair in told["pairs"]] == [True, False, True, True]
    assert told["step_ms"]["b"] == 20.0


def test_all_marked_ends_and_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40, "stalled")] * 9, [arm(20)] * 9), pairs=3)
    assert len(told["pairs"]) == 5
    assert told["ratio"] is None and told["step_ms"] is None
    assert told["outcome"] == "unfinished" and told["score"] == "not scored"


def test_interrupt_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40), arm(40)], [arm(20), KeyboardInterrupt()]))
    assert told["interrupted"] and len(told["pairs"]) == 1
    assert told["outcome"] == "unfinished"


def test_a_failed_recording_costs_its_own_pair_only(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder([arm(40), TargetError("it broke"), *[arm(40)] * 9], [arm(20)] * 9)
    told = run(monkeypatch, recorder)
    assert recorder.order == "ab" + "ba" + "ab" + "ba"
    assert told["ratio"]["pairs"] == 3 and told["outcome"] == "improvement"
    assert told["left_out"] == [{"pair": 2, "side": "a", "why": ["it broke"]}]
    assert told["pairs"][1]["a"]["step_ms"] is None and told["pairs"][1]["ratio"] is None
    assert told["pairs"][1]["b"]["step_ms"] == 20.0
    assert not any("Ended early" in note for note in told["notes"])


def test_the_second_recording_of_a_failed_pair_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder([arm(40)] * 9, [arm(20), TargetError("it broke"), *[arm(20)] * 9])
    told = run(monkeypatch, recorder)
    assert recorder.order == "ab" + "b" + "ab" + "ba"
    assert told["left_out"] == [{"pair": 2, "side": "b", "why": ["it broke"]}]


def test_two_failed_pairs_in_a_row_end_it_and_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40)] * 9, [arm(20), arm(20), *[TargetError("no memory")] * 9]))
    assert len(told["pairs"]) == 4 and told["ratio"]["pairs"] == 2
    assert told["outcome"] == "unfinished" and told["score"] == "not scored"
    assert any("2 pairs in a row failed" in note for note in told["notes"])


def test_never_ending_recordings_end_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40)] * 9, [arm(20, LATE)] * 9))
    assert len(told["pairs"]) == 2
    assert [item["why"] for item in told["left_out"]] == [[LATE], [LATE]]


def test_a_remedy_that_crashes_the_program_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder([arm(40)] * 9, [TargetError("it ended with status 1")] * 9)
    told = run(monkeypatch, recorder)
    assert recorder.order == "ab" + "b"  # once more, to tell it from bad luck
    assert told["outcome"] == "fails with the remedy" and told["ratio"] is None
    assert told["reason"] == "with the remedy it ended with status 1"
    assert told["score"] == "not scored"


def test_one_crash_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40)] * 9, [TargetError("bad luck"), *[arm(20)] * 9]))
    assert told["outcome"] == "improvement" and told["ratio"]["pairs"] == 3


def test_failure_of_the_first_as_it_was_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="fails as it was recorded: it broke"):
        run(monkeypatch, Recorder([TargetError("it broke")], []))


def test_a_remedy_that_is_not_taken_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="not taken"):
        run(monkeypatch, Recorder([arm(40)], [UsageError("not taken")]))
    told = run(monkeypatch, Recorder([arm(40)] * 9, [arm(20), UsageError("not taken"), *[arm(20)] * 9]))
    assert told["ratio"]["pairs"] == 3 and told["left_out"][0]["why"] == ["not taken"]


def test_a_useless_change_shows_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs that differ by chance in both directions, and by less than the 2 % that count."""
    a, b = [arm(x) for x in (40, 41, 39.5, 40.2, 40.6)], [arm(x) for x in (40.4, 40.2, 39.9, 40.9, 39.8)]
    told = run(monkeypatch, Recorder(a, b))
    assert told["outcome"] == "no difference shown" and told["ratio"]["pairs"] == 5
    told = run(monkeypatch, Recorder([arm(40.4 + 0.1 * k) for k in range(5)], [arm(40.0)] * 5))
    assert told["outcome"] == "no difference shown"  # faster in each pair, by about 1 %


def test_steps_of_another_size_are_compared_by_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40)] * 9, [arm(60, batch=16.0, loss=7.0)] * 9))
    assert told["unit"] == "sample" and told["ratio"]["median"] == pytest.approx(80 / 60)
    assert told["outcome"] == "improvement" and told["loss"]["state"] == "not compared"
    assert told["batch"] == {"a": 8.0, "b": 16.0}
    assert any("for a sample" in note for note in told["notes"])


def test_requests_are_compared_by_their_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a server come as often as requests do."""
    told = run(monkeypatch, Recorder([arm(40, latency_ms=9.0)] * 9, [arm(40, latency_ms=6.0)] * 9))
    assert told["unit"] == "request" and told["ratio"]["median"] == 1.5
    assert told["latency_ms"] == {"a": 9.0, "b": 6.0}
    assert told["score"] == "not scored"  # the prediction is about steps


def test_throughput_is_all_work_over_all_time(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(20), arm(60), arm(40)] * 3, [arm(10), arm(30), arm(20)] * 3))
    assert told["step_ms"]["a"] == 40.0
    assert told["throughput"]["a"] == pytest.approx(8 / 0.040)
    assert told["throughput"]["unit"] == "samples/s"


def test_other_programs_on_the_cores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([replace(arm(40), others=0.5)] * 9, [replace(arm(20), others=0.3)] * 9))
    assert any("Other programs kept 40 % of the cores busy" in note for note in told["notes"])


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_record", Recorder([arm(40)] * 9, [arm(20)] * 9))
    seen: list[tuple[float, float]] = []
    numbers: list[int] = []
    verify(plan(), Path(), Listener(lambda done, total, text: seen.append((done, total)),
                                    lambda pair, number: numbers.append(number)))
    assert numbers == [1, 2, 3]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= total for done, total in seen)


def test_remedy_without_effect_is_told(tmp_path: Path) -> None:
    check_applied(tmp_path, {"num_workers": 4}, {"num_workers": 4})
    check_applied(tmp_path, {}, {})
    with pytest.raises(UsageError, match="num_workers=2"):
        check_applied(tmp_path, {"num_workers": 2}, {"num_workers": 4})
    with pytest.raises(UsageError, match="makes no torch DataLoader"):
        check_applied(tmp_path, {"num_workers": 2}, {})


def test_what_the_probe_did_not_do_is_told(tmp_path: Path) -> None:
    def said(writer: Any, start: int) -> None:
        writer.event(start, "intervention", "info", "", data={"setting": "threads", "value": 2})
        writer.event(start, "intervention_failed", "warning", "",
                     data={"setting": "cudnn_benchmark", "reason": "this torch has no cuDNN"})

    path = make_run(tmp_path / "a.stepscope", events=said)
    check_applied(path, {"threads": 2}, {})
    with pytest.raises(UsageError, match="cudnn_benchmark was not applied: this torch has no cuDNN"):
        check_applied(path, {"cudnn_benchmark": True}, {})
    with pytest.raises(UsageError, match="matmul_precision was not applied"):
        check_applied(path, {"matmul_precision": "high"}, {})


@pytest.mark.slow
def test_a_remedy_with_which_the_program_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real recorders: both stuck ones are ended at their limit, and nothing of theirs goes on."""
    path = recorded(tmp_path)
    monkeypatch.setattr(module, "LEAST_S", 3.0)
    monkeypatch.setattr(module, "TIMES", 1)
    for name, value in environment(tmp_path, STUCK="1").items():
        monkeypatch.setenv(name, value)
    with Run.open(path) as opened:
        planned = make_plan(opened, diagnose(opened), tried=Tried("num_workers", None, 2))
    told = verify(planned, tmp_path / "tmp", Listener()).to_json()
    assert told["outcome"] == "fails with the remedy"
    assert all("did not end in time" in item["why"][0] for item in told["left_out"])
    assert [item["pair"] for item in told["left_out"]] == [1, 2]
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if str(tmp_path) in line]
