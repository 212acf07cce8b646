from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from profiler.experiments.scoreboard import scoreboard
from profiler.run.results import append_result
from tests.runs import make_run


def result(score: str, speedup: float | None = 2.0, median: float | None = 2.0,
           **more: Any) -> dict[str, Any]:
    """What a verify keeps, as far as the score goes."""
    predicted = {"scenario": "no_input_wait", "speedup": speedup, "low": 1.8, "high": 2.2, "at_most": False}
    return {"schema": 1, "kind": "verify", "finding": {"rule": "input_bound", "title": "Data wait"},
            "remedy": {"setting": "num_workers", "from": 0, "to": 4},
            "prediction": predicted if speedup else None,
            "ratio": {"median": median, "low": 1.9, "high": 2.1, "pairs": 3, "coverage": 0.75}
            if median is not None else None,
            "outcome": "improvement", "score": score} | more


def run_with(path: Path, *results: Any) -> Path:
    make_run(path)
    for number, told in enumerate(results):
        append_result(path, "experiment", {**told, "number": number})
    return path


def test_counts_and_the_median_error(tmp_path: Path) -> None:
    run_with(tmp_path / "a.stepscope", result("hit", 2.0, 2.1), result("miss", 2.0, 3.0))
    run_with(tmp_path / "b.stepscope", result("vague"), result("not scored", None, 1.0, finding=None))
    run_with(tmp_path / "c.stepscope")
    board = scoreboard([tmp_path])
    assert board.counts == {"hit": 1, "miss": 1, "vague": 1, "not scored": 1}
    assert board.error == pytest.approx(math.log(2.1 / 2.0))
    assert board.runs == 3 and board.skipped == 0
    assert board.to_json()["not_scored"] == 1


def test_an_error_counts_alike_on_both_sides(tmp_path: Path) -> None:
    run_with(tmp_path / "a.stepscope", result("miss", 2.0, 4.0))
    run_with(tmp_path / "b.stepscope", result("miss", 2.0, 1.0))
    one, other = scoreboard([tmp_path]).entries
    assert one.error == other.error == pytest.approx(math.log(2))


def test_without_a_prediction_there_is_no_error(tmp_path: Path) -> None:
    board = scoreboard([run_with(tmp_path / "a.stepscope", result("not scored", None, 1.0))])
    assert board.error is None and len(board.entries) == 1


def test_a_copy_of_a_run_counts_once(tmp_path: Path) -> None:
    path = run_with(tmp_path / "a.stepscope", result("hit"))
    shutil.copy(path, tmp_path / "copy.stepscope")
    board = scoreboard([tmp_path, path])
    assert len(board.entries) == 1 and board.runs == 3


def test_other_experiments_are_none_of_ours(tmp_path: Path) -> None:
    board = scoreboard([run_with(tmp_path / "a.stepscope", {"kind": "sweep"}, result("hit"))])
    assert len(board.entries) == 1 and board.skipped == 0


@pytest.mark.parametrize("told", [
    {"kind": "verify"}, result("hit", 2.0, 0.0), result("hit", 2.0, None), result("splendid"),
    {**result("hit"), "remedy": None}, {**result("not scored", None), "prediction": {"low": "\x1b[2J"}},
    {**result("not scored"), "ratio": {"median": 1.0, "low": [], "high": True}}])
def test_results_that_are_none_are_skipped(tmp_path: Path, told: dict[str, Any]) -> None:
    run_with(tmp_path / "good.stepscope", result("hit"))
    board = scoreboard([run_with(tmp_path / "a.stepscope", told), tmp_path / "good.stepscope"])
    assert board.skipped == 1 and len(board.entries) == 1


def test_damaged_and_foreign_files_are_skipped(tmp_path: Path) -> None:
    run_with(tmp_path / "good.stepscope", result("hit"))
    whole = (tmp_path / "good.stepscope").read_bytes()
    (tmp_path / "torn.stepscope").write_bytes(whole[:len(whole) // 3])
    (tmp_path / "empty.stepscope").touch()
    (tmp_path / "text.stepscope").write_text("no run")
    (tmp_path / "folder.stepscope").mkdir()
    board = scoreboard([tmp_path])
    assert board.skipped == 4 and board.counts["hit"] == 1


def test_folders_in_the_folder_are_looked_into(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    run_with(tmp_path / "deep" / "a.stepscope", result("hit"))
    assert scoreboard([tmp_path]).counts["hit"] == 1
