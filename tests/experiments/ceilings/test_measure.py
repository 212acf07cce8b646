from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.errors import TargetError, UsageError
from profiler.experiments.arm import Arm
from profiler.experiments.ceilings import measure as module
from profiler.experiments.ceilings.measure import Listener, measure, unapplied
from profiler.experiments.ceilings.plan import Kind, Plan, plan_of_run, stages
from profiler.experiments.ceilings.result import Result, Taken
from profiler.experiments.program import Program
from profiler.model import STAGES
from profiler.run.reader import Run
from tests.runs import make_run

CPU = Kind(on_device=False, trains=True, workers=2)
MS = {"real": 42.0, "loader": 40.0, "cached": 15.0, "device": 12.0, "forward": 5.0, "loader_advised": 22.0}
NOTED = {"loader": "loader_only", "cached": "cached_batch", "device": "device_batch",
         "forward": "forward_only"}


def arm(step_ms: float, *marks: str, batch: float = 16.0, workers: int = 2) -> Arm:
    parts = dict.fromkeys(STAGES, 0.0) | {"forward": step_ms}
    return Arm(step_ms, step_ms, 50, parts, 1e3 * batch / step_ms, marks, {"num_workers": workers},
               batch=batch)


def plan(repeats: int = 2, **more: Any) -> Plan:
    return Plan(Program(Path(), command=("x",)), 60, repeats, **more)


def stage_of(path: Path) -> tuple[int, str]:
    number, _, name = path.stem.partition("-")
    return int(number), name


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands for recordings: gives arms by stage, or what `say` gives for a round and a stage."""
    def play(kind: Kind = CPU, say: Any = lambda number, name: None, deaf: str = "") -> list[str]:
        order: list[str] = []

        def record(self: Program, output: Path, tick: Any, **options: Any) -> Path:
            order.append(output.stem)
            tick(1.0)
            if isinstance(value := say(*stage_of(output)), BaseException):
                raise value
            return output

        def read(path: Path, steps: int) -> Arm:
            number, name = stage_of(path)
            return say(number, name) or arm(MS[name])

        monkeypatch.setattr(Program, "record", record)
        monkeypatch.setattr(module, "read_arm", read)
        monkeypatch.setattr(module, "_look", lambda path: kind)
        monkeypatch.setattr(module, "unapplied", lambda path, wanted: "it was not applied" * (deaf in wanted))
        return order

    return play


def run(plan: Plan) -> dict[str, Any]:
    return measure(plan, Path(), Listener()).to_json()


def test_rounds_go_forth_and_back(played: Any) -> None:
    order = played()
    told = run(plan(3))
    assert order == ["1-real", "1-loader", "1-cached", "1-forward", "2-forward", "2-cached", "2-loader",
                     "2-real", "3-real", "3-loader", "3-cached", "3-forward"]
    assert [stage["name"] for stage in told["stages"]] == ["real", "loader", "cached", "forward"]
    assert told["leaning"]["on"] == "loader" and told["leaning"]["how"] == "reaches"
    assert told["loader_ms"] == {"2": 40.0}
    assert {item["stage"]: item["why"] for item in told["absent"]}.keys() == {"device"}


def test_on_a_device_the_batch_is_kept_there_too(played: Any) -> None:
    played(Kind(on_device=True, trains=True, workers=0))
    told = run(plan(1))
    assert [stage["name"] for stage in told["stages"]] == ["real", "loader", "cached", "device", "forward"]
    assert not told["absent"]


def test_what_each_stage_changes() -> None:
    found, absent = stages(plan(advised=4), Kind(on_device=True, trains=False, workers=2))
    assert {stage.name: dict(stage.intervene) for stage in found} == {
        "real": {}, "loader": {"loader_only": 60, "inference": True},
        "loader_advised": {"loader_only": 60, "inference": True, "num_workers": 4},
        "cached": {"cached_batch": True, "inference": True},
        "device": {"device_batch": True, "inference": True}}
    assert list(absent) == ["forward"]
    found, _ = stages(plan(advised=2), Kind(on_device=True, trains=True, workers=2))
    assert dict(found[-1].intervene) == {"device_batch": True, "forward_only": True}
    found, absent = stages(plan(), Kind(on_device=False, trains=True, workers=None))
    assert [stage.name for stage in found] == ["real"] and "no DataLoader" in absent["loader"]


def test_workers_as_advised_are_a_ceiling_of_their_own(played: Any) -> None:
    def say(number: int, name: str) -> Any:
        return arm(MS[name], workers=4) if name == "loader_advised" else None

    played(say=say)
    assert run(plan(1, advised=4))["loader_ms"] == {"2": 40.0, "4": 22.0}


def test_one_failure_is_told_and_loses_nothing_else(played: Any) -> None:
    def say(number: int, name: str) -> Any:
        return TargetError("it broke") if (number, name) == (2, "cached") else None

    played(say=say)
    told = run(plan(3))
    assert told["left_out"] == [{"stage": "cached", "title": "no input (one batch kept)", "round": 2,
                                 "why": ["it broke"]}]
    assert {stage["name"]: stage["runs"] for stage in told["stages"]} == {
        "real": 3, "loader": 3, "cached": 2, "forward": 3}


def test_a_stage_that_keeps_failing_is_given_up(played: Any) -> None:
    order = played(say=lambda number, name: TargetError("it broke") if name == "cached" else None)
    told = run(plan(4))
    assert [name for name in order if "cached" in name] == ["1-cached", "2-cached"]
    assert {item["stage"]: item["why"] for item in told["absent"]}["cached"] == "it broke"
    assert told["leaning"]["on"] == "loader"


def test_what_was_not_applied_is_not_tried_again(played: Any) -> None:
    order = played(deaf="loader_only")
    told = run(plan(3))
    assert order.count("1-loader") == 1 and "2-loader" not in order
    assert "loader" not in {stage["name"] for stage in told["stages"]}
    assert told["leaning"]["how"] == "unknown"


def test_a_stalled_recording_and_a_late_one_are_left_out_visibly(played: Any) -> None:
    def say(number: int, name: str) -> Any:
        return {(1, "loader"): arm(400.0, "stalled"), (2, "real"): arm(90.0, module.LATE)}.get((number, name))

    played(say=say)
    told = run(plan(2))
    assert [(item["stage"], item["why"]) for item in told["left_out"]] == [
        ("loader", ["stalled"]), ("real", [module.LATE])]
    assert told["stages"][1]["step_ms"] == {"median": 40.0, "low": 40.0, "high": 40.0}


def test_interrupt_keeps_what_was_measured(played: Any) -> None:
    played(say=lambda number, name: KeyboardInterrupt() if (number, name) == (1, "forward") else None)
    told = run(plan(2))
    assert told["interrupted"] and [stage["name"] for stage in told["stages"]] == ["real", "loader", "cached"]
    assert told["leaning"]["on"] == "loader"


def test_failure_of_the_program_itself_is_an_error(played: Any) -> None:
    played(say=lambda number, name: TargetError("it broke"))
    with pytest.raises(TargetError, match="it broke"):
        run(plan())


def test_progress_goes_up_to_the_end(played: Any) -> None:
    played()
    seen: list[tuple[float, int]] = []
    lines: list[Taken] = []
    measure(plan(2, step_s=0.1, begin_s=1.0),
            Path(), Listener(lambda done, total, left, text: seen.append((done, total)), lines.append))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][1] == len(lines) == 8 and seen[-1][0] <= 8


def test_steps_of_other_batches_are_scaled_to_the_runs() -> None:
    result = Result(plan(), CPU, [Taken("real", 1, arm(40.0, batch=12.0)), Taken("cached", 1, arm(16.0))])
    assert result.levels()["cached"].median == pytest.approx(12.0)


def test_an_intervention_must_have_told_of_itself(tmp_path: Path) -> None:
    def said(writer: Any, start: int) -> None:
        writer.event(start, "intervention", "info", "x", data={"setting": "cached_batch", "value": True})
        writer.event(start, "intervention", "info", "y", data={"from": {}, "to": {"num_workers": 4}})
        writer.event(start, "intervention_failed", "warning", "z",
                     data={"setting": "loader_only", "reason": "another thread reads the loader"})

    path = make_run(tmp_path / "a.stepscope", events=said)
    assert unapplied(path, {"cached_batch": True, "num_workers": 4, "inference": True}) == ""
    assert "not applied: another thread reads the loader" in unapplied(path, {"loader_only": 9})
    assert "nothing came to it" in unapplied(path, {"forward_only": True})


def test_a_plan_from_a_run(tmp_path: Path) -> None:
    meta = {"cwd": str(tmp_path), "command": ["sh", "-c", "true"]}
    waiting = {"data": 40.0, "forward": 3.0, "backward": 4.0}
    path = make_run(tmp_path / "a.stepscope", stages=waiting, samples=8, meta=meta, data_cpu=38.0,
                    host={"target.cpu": 1.0, "host.cpu": 0.13}, cores=8)
    with Run.open(path) as opened:
        made = plan_of_run(opened, 3, None)
        assert plan_of_run(opened, 3, 99).steps == 99
    assert made.kind == Kind(on_device=False, trains=True, workers=0)
    assert made.steps >= 60 and made.step_s == pytest.approx(0.047, rel=0.01)
    assert made.advised is not None and made.advised > 1
    assert made.expected_s() and made.recordings() == 3 * 5
    watched = make_run(tmp_path / "b.stepscope", meta={"kind": "monitor"})
    with Run.open(watched) as opened, pytest.raises(UsageError, match="no command"):
        plan_of_run(opened, 3, None)
