"""Names of runs that nobody named: many recordings may begin in the same second."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.cli._recording import output_path
from profiler.errors import TakenRunError
from profiler.record.clock import Clock
from profiler.record.options import Options
from profiler.record.recorder import _create
from tests.record.running import environment
from tests.record.together import at_once


def test_a_name_of_ours_that_another_recording_took_first_gets_a_number(tmp_path: Path) -> None:
    name = tmp_path / "a.b-train.stepscope"
    options = Options(output=name, renumber=True)
    for expected in ("a.b-train.stepscope", "a.b-train-2.stepscope", "a.b-train-3.stepscope"):
        found, writer = _create(options, Clock())
        writer.close()
        assert found.output == writer.path == tmp_path / expected


def test_a_link_to_nowhere_has_its_name(tmp_path: Path) -> None:
    name = tmp_path / "train.stepscope"
    name.symlink_to(tmp_path / "gone")
    found, writer = _create(Options(output=name, renumber=True), Clock())
    writer.close()
    assert found.output.name == "train-2.stepscope" and name.is_symlink()


def test_a_name_of_the_users_is_not_changed(tmp_path: Path) -> None:
    name = tmp_path / "train.stepscope"
    name.write_bytes(b"")
    with pytest.raises(TakenRunError, match="exists already"):
        _create(Options(output=name), Clock())


def test_a_name_above_the_working_folder_outlives_that_folder(tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = output_path(Path("../a.stepscope"), "a", force=False)
    (tmp_path / "here").rmdir()
    found, writer = _create(Options(output=path), Clock())
    writer.finish("finished", 1)
    assert writer.failed is None and found.output == tmp_path / "a.stepscope"


@pytest.mark.parametrize("command", [("record", "--", "true"), ("monitor", "--force", "--duration", "0.1")])
def test_recordings_that_begin_in_the_same_second_are_all_made(tmp_path: Path,
                                                               command: tuple[str, ...]) -> None:
    ends = at_once(4, command, environment(tmp_path))
    assert [(status, told) for status, told in ends if status] == []
    assert len(list((tmp_path / "runs").glob("*.stepscope"))) == 4
