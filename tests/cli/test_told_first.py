"""What an experiment starts for a run of somebody else is said first, and nothing of it is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.cli import main
from profiler.cli._experiment import tell_start
from profiler.experiments.program import Program, recorded_program
from tests.runs import make_run


def _said(program: Program, capsys: pytest.CaptureFixture[str]) -> str:
    tell_start(program)
    return capsys.readouterr().err


def test_variables_of_the_run_are_said(capsys: pytest.CaptureFixture[str],
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """They can start other code than the command: a folder of modules, a library that CUDA loads."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    environment = {"PYTHONPATH": "/tmp/of them", "CUDA_INJECTION64_PATH": "/tmp/x.so", "OMP_NUM_THREADS": "4"}
    meta = {"kind": "record", "command": ["python", "train.py"], "cwd": "/work", "environment": environment}
    said = _said(recorded_program(meta), capsys)
    assert said == ("It starts python train.py in /work with CUDA_INJECTION64_PATH=/tmp/x.so "
                    "PYTHONPATH='/tmp/of them'\n")
    workload = {"name": "input_starved", "settings": {}}
    assert "PYTHONPATH" in _said(recorded_program({**meta, "workload": workload}), capsys)
    assert _said(recorded_program({**meta, "workload": workload, "environment": {}}), capsys) == ""


def test_a_long_command_is_said_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("python", "-c", "x" * 2000 + "\x1b[8m" + "evil()" + "y" * 2000)
    said = _said(Program(Path("/work"), command=words), capsys)
    assert "".join(said.splitlines()).count("evil()") == 1 and "..." not in said and "\x1b" not in said
    assert "".join(said.splitlines()).count("y") >= 2000


@pytest.mark.parametrize("words", [("diagnose",), ("diagnose", "--json"), ("report",)])
def test_only_to_look_starts_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    """The command in the file would leave a mark."""
    mark = tmp_path / "mark"
    path = make_run(tmp_path / "a.stepscope", meta={
        "command": ["touch", str(mark)], "cwd": str(tmp_path),
        "environment": {"PYTHONPATH": str(tmp_path), "CUDA_INJECTION64_PATH": str(mark)}})
    (tmp_path / "sitecustomize.py").write_text(f"open({str(mark)!r}, 'w')")
    assert main([words[0], str(path), *words[1:]]) == 0
    assert not mark.exists()
