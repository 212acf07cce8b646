from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.errors import TargetError
from profiler.experiments.arm import read_arm, why_failed
from tests.runs import UUID, make_run

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


def ended(folder: Path, said: bytes, steps: int = 0, **how: Any) -> Path:
    exit = {"code": 1, "signal": None, "reason": "ended"} | how
    return make_run(folder / "a.stepscope", steps=steps, stages=SLOW, meta={"exit": exit},
                    events=lambda writer, start: writer.output(start, said))


def test_a_failed_recording_says_why(tmp_path: Path) -> None:
    broken = ended(tmp_path, b"Traceback\nValueError: no such thing\n")
    with pytest.raises(TargetError, match=r"^it ended with status 1; it said: ValueError: no such thing"):
        read_arm(broken)


def test_memory_that_ran_out_is_told(tmp_path: Path) -> None:
    out = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nlogging off\n"
    with pytest.raises(TargetError, match=r"ran out of memory .* after 10 steps; it said: torch"):
        read_arm(ended(tmp_path, out, steps=10), steps=60)


def test_a_kill_is_told_as_what_it_may_be() -> None:
    assert "SIGKILL, as the system does when memory" in why_failed({"code": 137, "signal": "SIGKILL"}, b"")
    assert why_failed({"code": 0, "signal": None, "reason": "ended"}, b"CUDA out of memory") == ""
    assert why_failed({"code": 130, "signal": "SIGINT", "reason": "steps"}, b"") == ""


def test_a_crash_in_the_middle_is_a_failure_and_one_after_the_last_step_is_none(tmp_path: Path) -> None:
    late = ended(tmp_path, b"Segmentation fault\n", steps=60, code=139, signal="SIGSEGV")
    assert read_arm(late, steps=60).marks == ()
    with pytest.raises(TargetError, match="SIGSEGV after"):
        read_arm(late, steps=200)


def test_a_recording_without_an_end_or_a_step(tmp_path: Path) -> None:
    stuck = make_run(tmp_path / "a.stepscope", steps=0,
                     meta={"exit": {"code": 130, "signal": "SIGINT", "reason": "duration"}})
    with pytest.raises(TargetError, match="did not end in time, and no step"):
        read_arm(stuck)


def test_stalls_that_the_program_has_anyway_are_no_mark(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", steps=80,
                    stages={**SLOW, "other": lambda k: 400.0 * (k in (25, 31, 70))})
    assert read_arm(path).marks == ("stalled",)
    assert read_arm(path, stalls=0.2).marks == ()


def test_latency_of_requests_is_read(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", stages=SLOW, events=lambda writer, start: writer.event(
        start, "latency", "info", "latency p50 9.0 ms", data={"p50_ms": 9.0}))
    assert read_arm(path).latency_ms == 9.0


def test_epoch_starts_count_where_the_remedy_is_about_them(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope",
                    stages={**SLOW, "data": lambda k: 400.0 if k % 20 == 0 else 10.0},
                    flags=lambda k: 2 if k % 20 == 0 else 0, workers=2)
    assert read_arm(path).step_ms == pytest.approx(15.0)
    assert read_arm(path, of_epochs=True).step_ms == pytest.approx(15.0 + 390.0 * 2 / 59)
