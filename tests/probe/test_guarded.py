"""A hook of ours that fails is switched off and told; the user's loop goes on as if nothing was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probe.reading import run, with_and_without


def test_broken_hooks_go_off_one_by_one(tmp_path: Path) -> None:
    ran, bare = with_and_without(tmp_path, "sabotaged.py", env={"STEPSCOPE_TRACE": '{"start_step": 1000}'})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, bare.stdout, "")
    off = ran.only.events("hook_off")
    assert [e["data"]["hook"] for e in off] == ["optimizer", "backward", "trace", "tape", "forward", "loader"]
    assert all("ZeroDivisionError: sabotage" in e["text"] for e in off)
    assert len(ran.only.training) >= 5  # while something could still be seen


@pytest.mark.slow
def test_spool_that_cannot_be_written_is_given_up(tmp_path: Path) -> None:
    ran = run(tmp_path, "sabotaged.py", env={"STEPSCOPE_SPOOL": str(tmp_path / "missing" / "spool")})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.processes == []
