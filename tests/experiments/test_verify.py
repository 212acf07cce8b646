from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import TargetError, UsageError
from profiler.experiments import verify as module
from profiler.experiments.arm import Arm, read_arm
from profiler.experiments.plan import Plan
from profiler.experiments.program import Program
from profiler.experiments.verify import Listener, check_applied, verify
from profiler.model import STAGES
from profiler.rules.base import Finding, Prediction, Remedy
from tests.runs import UUID, make_run


def arm(step_ms: float, *marks: str, loss: float = 1.0) -> Arm:
    stages = dict.fromkeys(STAGES, 0.0) | {"data": step_ms - 5, "forward": 5.0}
    return Arm(step_ms, step_ms, 50, stages, 8000 / step_ms, marks, {"num_workers": 4}, {"step 60": loss})


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


def test_failure_of_a_later_pair_keeps_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(monkeypatch, Recorder([arm(40), TargetError("it broke")], [arm(20)] * 3))
    assert len(told["pairs"]) == 1
    assert any("it broke" in note for note in told["notes"])


def test_failure_of_the_first_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="it broke"):
        run(monkeypatch, Recorder([TargetError("it broke")], []))


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_record", Recorder([arm(40)] * 9, [arm(20)] * 9))
    seen: list[tuple[float, float]] = []
    numbers: list[int] = []
    verify(plan(), Path(), Listener(lambda done, total, text: seen.append((done, total)),
                                    lambda pair, number: numbers.append(number)))
    assert numbers == [1, 2, 3]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= total for done, total in seen)


def test_remedy_without_effect_is_told() -> None:
    check_applied(plan(), {"num_workers": 4})
    with pytest.raises(UsageError, match="num_workers=4"):
        check_applied(plan(), {"num_workers": 0})


SLOW = {"data": 40.0, "forward": 2.0, "backward": 3.0}


def test_reads_an_arm(tmp_path: Path) -> None:
    measured = read_arm(make_run(tmp_path / "a.stepscope", stages=SLOW, samples=8))
    assert measured.marks == ()
    assert measured.step_ms == pytest.approx(45.0)
    assert sum(measured.stages_ms.values()) == pytest.approx(45.0)
    assert measured.loader["num_workers"] == 0


def test_marks_stalls_and_throttling(tmp_path: Path) -> None:
    stalled = make_run(tmp_path / "a.stepscope", steps=80,
                       stages={**SLOW, "other": lambda k: 600.0 * (k == 60)})
    assert read_arm(stalled).marks == ("stalled",)
    hot = make_run(tmp_path / "b.stepscope", stages=SLOW, gpu={"gpu.throttle": 0x40, "gpu.util": 0.9},
                   device={"forward": 2.0, "backward": 3.0}, properties={"torch": {"uuid": {"0": UUID}}})
    assert read_arm(hot).marks == ("throttled",)
    capped = make_run(tmp_path / "c.stepscope", stages=SLOW, gpu={"gpu.throttle": 0x04, "gpu.util": 0.9},
                      device={"forward": 2.0, "backward": 3.0})
    assert read_arm(capped).marks == ()


def test_marks_what_did_not_end_and_few_steps(tmp_path: Path) -> None:
    late = make_run(tmp_path / "a.stepscope", stages=SLOW,
                    meta={"exit": {"code": 130, "signal": "SIGINT", "reason": "duration"}})
    assert read_arm(late).marks == ("did not end in time",)
    few = make_run(tmp_path / "b.stepscope", stages=SLOW, steps=5)
    assert "steady steps" in read_arm(few).marks[0]


def test_a_failed_recording_says_why(tmp_path: Path) -> None:
    def said(writer: Any, start: int) -> None:
        writer.output(start, b"Traceback\nValueError: no such thing\n")

    broken = make_run(tmp_path / "a.stepscope", steps=0, events=said,
                      meta={"exit": {"code": 1, "signal": None, "reason": "ended"}})
    with pytest.raises(TargetError, match="status 1; it said: ValueError: no such thing"):
        read_arm(broken)


def test_epoch_starts_count_where_the_remedy_is_about_them(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope",
                    stages={**SLOW, "data": lambda k: 400.0 if k % 20 == 0 else 10.0},
                    flags=lambda k: 2 if k % 20 == 0 else 0, workers=2)
    assert read_arm(path).step_ms == pytest.approx(15.0)
    assert read_arm(path, of_epochs=True).step_ms == pytest.approx(15.0 + 390.0 * 2 / 59)
