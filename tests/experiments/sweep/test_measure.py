from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.errors import TargetError
from profiler.experiments.program import Program
from profiler.experiments.sweep.measure import (
    CRASHED,
    MEMORY,
    REFUSED,
    SILENT,
    STUCK,
    Measured,
    Recorder,
    read,
)
from profiler.experiments.sweep.subject import Subject
from tests.runs import make_run

STAGES = {"data": 5.0, "forward": 2.0, "backward": 3.0}


def ended(code: int | None = None, signal: str | None = None, reason: str = "ended") -> dict[str, Any]:
    return {"exit": {"code": code, "signal": signal, "reason": reason}}


def said(text: bytes) -> Any:
    return lambda writer, start: writer.output(start, text)


def test_reads_rate_memory_and_stages(tmp_path: Path) -> None:
    found = read(make_run(tmp_path / "a.stepscope", stages=STAGES, samples=8,
                          host={"target.mem_rss": 3e8}), {}, steps=60)
    assert found.counts and found.step_ms == pytest.approx(10.0) and found.rate == pytest.approx(800.0)
    assert found.memory == 3e8 and "resident" in found.memory_of and found.energy is None
    assert Measured.from_json(found.to_json()) == found


def test_rates_with_epoch_starts(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", samples=8, workers=2, flags=lambda k: 2 if k % 20 == 0 else 0,
                    stages={**STAGES, "data": lambda k: 205.0 if k % 20 == 0 else 5.0})
    plain, of_epochs = (read(path, {}, steps=60, of_epochs=way) for way in (False, True))
    assert plain.rate == pytest.approx(800.0) and of_epochs.epochs == 2
    assert of_epochs.rate == pytest.approx(8e3 / (10.0 + 200.0 * 2 / 59))


@pytest.mark.parametrize(("exit", "output", "word"), [
    (ended(1), b"Traceback\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n", MEMORY),
    (ended(1), b"RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n", MEMORY),
    (ended(137, "SIGKILL"), b"step 3\n", MEMORY),
    (ended(1), b"Traceback\nValueError: no\n", CRASHED),
    (ended(139, "SIGSEGV"), b"", CRASHED),
    (ended(130, "SIGINT", "duration"), b"step 3\n", STUCK),
    (ended(0), b"CUDA out of memory, going on with less\n", SILENT),
])
def test_what_kind_of_failure_it_was(tmp_path: Path, exit: dict[str, Any], output: bytes, word: str) -> None:
    path = make_run(tmp_path / "a.stepscope", steps=0, meta=exit, events=said(output))
    found = read(path, {}, steps=60)
    assert found.failure == word and found.why and not found.counts
    assert Measured.from_json(found.to_json()) == found


def test_a_run_that_goes_on_until_its_time_is_up_is_stuck(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", stages=STAGES, meta=ended(130, "SIGINT", "duration"))
    assert read(path, {}, steps=600).failure == STUCK


def test_a_program_that_survives_a_lack_of_memory_counts(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", stages=STAGES, meta=ended(0),
                    events=said(b"CUDA out of memory: going on with half the batch\n"))
    assert read(path, {}, steps=60).counts


def test_settings_that_the_loader_did_not_take(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", stages=STAGES, workers=0)
    assert read(path, {"num_workers": 0}, steps=60).counts
    refused = read(path, {"num_workers": 4}, steps=60)
    assert refused.failure == REFUSED and "num_workers=4" in refused.why
    without = make_run(tmp_path / "b.stepscope", stages=STAGES, workers=None)
    assert "no DataLoader" in read(without, {"num_workers": 4}, steps=60).why
    assert read(without, {"threads": 2}, steps=60).counts


def test_a_recording_that_gives_no_file_is_a_failure_of_its_point(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> Path:
        raise TargetError("no run file")

    monkeypatch.setattr(Program, "record", broken)
    recorder = Recorder(Subject(Program(tmp_path, command=("x",)), ()), 60)
    found = recorder({}, tmp_path / "a.stepscope", 10.0, lambda seconds: None)
    assert found.failure == CRASHED and found.why == "no run file" and found.wall_s >= 0
