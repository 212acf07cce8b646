"""What is added to a run after its recording."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from profiler.errors import NotARunError, RunError
from profiler.run.reader import Run
from profiler.run.writer import RunWriter, append_result, settle, update_meta
from tests.run.planned import START, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.stepscope"


def test_results_and_notes_beside_a_reader(path: Path) -> None:
    write(path, [(START, 1.0)])
    with Run.open(path) as run:
        assert not run.refresh()
        assert append_result(path, "diagnosis", {"verdict": "input_bound", "p5": float("nan")}) == 1
        assert append_result(path, "experiment", {"hit": True}) == 2
        assert append_result(path, "diagnosis", {"verdict": "unknown"}) == 3
        update_meta(path, "notes", "näher ansehen")
        assert run.refresh()
        assert run.results("diagnosis") == [{"verdict": "input_bound", "p5": None}, {"verdict": "unknown"}]
        assert run.results("experiment") == [{"hit": True}]
        assert run.results("sweep") == []
        assert run.meta["notes"] == "näher ansehen"
        assert not run.refresh()


def test_another_process_writes_while_this_one_reads(path: Path) -> None:
    track = write(path, [(START + i, 1.0) for i in range(1000)])
    code = ("import sys, pathlib; from profiler.run.writer import append_result\n"
            "for i in range(30): append_result(pathlib.Path(sys.argv[1]), 'diagnosis', {'i': i})")
    with Run.open(path) as run:
        child = subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT)
        while child.poll() is None:
            run.refresh()
            assert len(run.values(track)[0]) == 1000
        assert child.returncode == 0
        assert run.results("diagnosis") == [{"i": i} for i in range(30)]


def test_not_while_it_is_recorded(path: Path) -> None:
    writer = RunWriter.create(path, {})
    writer.commit()
    for change in (lambda: update_meta(path, "name", "x"), lambda: append_result(path, "diagnosis", {}),
                   lambda: settle(path)):
        with pytest.raises(RunError, match="still being recorded"):
            change()
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert "name" not in run.meta and run.state == "finished"


def test_a_run_left_behind_is_settled(path: Path) -> None:
    track = write(path, [(START + i, 1.0) for i in range(25)], state=None)
    settle(path)
    assert [file.name for file in path.parent.iterdir()] == ["a.stepscope"]
    with Run.open(path) as run:
        assert run.meta["state"] == run.state == "partial"
        assert len(run.values(track)[0]) == 25


def test_only_in_runs(path: Path) -> None:
    with pytest.raises(RunError, match="no such file"):
        update_meta(path, "name", "x")
    assert not path.exists()
    path.write_text("some text that is no run")
    with pytest.raises(NotARunError):
        append_result(path, "diagnosis", {})
