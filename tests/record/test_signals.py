"""Signals that ask the recorder to end, at random moments: a clean end, or nothing had begun."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import pytest

from tests.record.kills import Kill, Killed
from tests.record.running import opened

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
ENDING = signal.SIGTERM, signal.SIGHUP  # those of the keyboard are the command's


def planned(count: int, seed: int) -> list[Kill]:
    rng = random.Random(seed)
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    phases = (("running", 0.8), ("start", 0.4), ("finish", 0.15), ("trace", 0.8))
    return [Kill("recorder", phase, rng.uniform(0, longest), control=rng.random() < 0.3, number=number)
            for turn in range(count) for number in [numbers[turn % 4]]
            for phase, longest in [phases[turn // 4 % 4]]]


def check(folder: Path, kill: Kill) -> None:
    case = Killed(folder, kill)
    case.go()
    died = case.code == -kill.number or (kill.number == signal.SIGINT and case.code == 130)
    if kill.phase == "finish" or (kill.phase == "start" and died):
        return  # before its handlers were there, or after they were gone; that the run opens was seen
    assert not died, case.code
    assert not list((folder / "tmp").glob("stepscope-*"))
    assert sorted(path.name for path in folder.glob("run.stepscope*")) == ["run.stepscope"]
    with opened(folder) as run:
        told = run.meta["exit"]
        if kill.number in ENDING:
            assert (told["reason"], run.state) == ("terminated", "finished")
        else:
            assert (told["reason"], told["code"]) == ("ended", 7) and case.code == 7


@pytest.mark.parametrize("number", range(8))
def test_s05_asked_to_end_at_a_random_moment(tmp_path: Path, number: int) -> None:
    check(tmp_path, planned(8, seed=1)[number])


@pytest.mark.slow
def test_s05_asked_to_end_at_eighty_random_moments(tmp_path: Path) -> None:
    for number, kill in enumerate(planned(80, seed=2026)):
        try:
            check(tmp_path / str(number), kill)
        except AssertionError as error:
            raise AssertionError(f"{number}: {kill}: {error}") from error


def test_signals_while_the_run_is_finished(tmp_path: Path) -> None:
    """Asked again and again: the first counts, and the end is as clean."""
    case = Killed(tmp_path, Kill("recorder", "running", 0.2, number=signal.SIGTERM))
    case.again = 5
    case.go()
    with opened(tmp_path) as run:
        assert run.meta["exit"]["reason"] == "terminated" and run.state == "finished"
    assert not list((tmp_path / "tmp").glob("stepscope-*"))
