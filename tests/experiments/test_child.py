"""What keeps a recording of an experiment from being started is an error of that recording."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from profiler.errors import RunError, TargetError, UsageError
from profiler.experiments import lines
from profiler.experiments.program import Program


@pytest.mark.parametrize(("command", "environment"), [
    (("echo", "a\0b"), {}), (("echo", "\ud800"), {}), (("echo",), {"A=B": "1"}), (("echo",), {"A": "\0"}),
    (("echo", "x" * 300_000), {})])
def test_words_that_no_program_can_get(command: tuple[str, ...], environment: Mapping[str, str],
                                       tmp_path: Path) -> None:
    program = Program(tmp_path, command=command, environment=environment)
    with pytest.raises(TargetError, match="cannot be started"):
        program.record(tmp_path / "run.stepscope", limit_s=1.0)


def test_a_working_directory_that_the_program_removed(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"cannot be started.*gone: No such file"):
        Program(tmp_path / "gone", command=("true",)).record(tmp_path / "run.stepscope", limit_s=1.0)


def test_a_line_is_kept_whole_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is almost full takes a part of it, which is no error yet."""
    room = 5

    def write(file: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(28, "No space left on device")
        taken = real(file, data[:room])
        room -= taken
        return taken

    real = lines.os.write
    monkeypatch.setattr(lines.os, "write", write)
    with pytest.raises(RunError, match="No space left"):
        lines.append(tmp_path / "a.jsonl", {"a": 1, "b": 2})
    monkeypatch.undo()
    lines.append(tmp_path / "a.jsonl", {"c": 3})
    assert lines.read(tmp_path / "a.jsonl") == ([{"c": 3}], 1)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with lines.alone(tmp_path), pytest.raises(UsageError, match="another process is at work"), \
            lines.alone(tmp_path):
        pass
    with lines.alone(tmp_path):
        pass


def test_what_was_there_stays_until_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    lines.replace(path, {"a": 1})

    def full(self: Path, text: str, encoding: str) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        lines.replace(path, {"a": 2})
    assert path.read_text() == '{\n "a": 1\n}\n' and list(tmp_path.iterdir()) == [path]
