"""What a recording says at its end, and to whom."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from profiler.cli._recording import tell
from profiler.record.options import Options, Outcome


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "steps", "lines"),
                         [(Screen(), 5, 2), (Screen(), 0, 1), (io.StringIO(), 5, 1)])
def test_the_next_command_is_named_to_a_person_where_steps_were_seen(
    stream: io.StringIO, steps: int, lines: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    path = Path("a run.stepscope")
    tell(Options(path, command=("true",)), Outcome(path, "finished", "ended", 0, steps, 1.0))
    told = stream.getvalue().splitlines()
    assert len(told) == lines
    assert ("stepscope diagnose 'a run.stepscope'" in told[-1]) == (lines == 2)


def test_an_end_that_was_asked_for_is_told_beside_the_traceback_of_an_interrupted_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    path = Path("a.stepscope")
    tell(Options(path, command=("true",), steps=40), Outcome(path, "finished", "steps", 1, 41, 1.0))
    assert sys.stderr.getvalue().startswith(  # type: ignore[attr-defined]
        "stepscope: the command was ended after 41 steps, as --steps asks\n")
