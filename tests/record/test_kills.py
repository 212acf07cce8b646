"""Killed at any moment: the run opens, at most a second is lost, the user's command is unharmed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.record.kills import Killed, planned

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.mark.parametrize("number", range(11))
def test_s09_killed_at_a_random_moment(tmp_path: Path, number: int) -> None:
    Killed(tmp_path, planned(11, seed=5)[number]).go()


@pytest.mark.slow
def test_s09_killed_at_two_hundred_random_moments(tmp_path: Path) -> None:
    losses: list[float] = []
    found: dict[str, int] = {}
    for number, kill in enumerate(planned(200, seed=2026)):
        case = Killed(tmp_path / str(number), kill)
        try:
            case.go()
        except AssertionError as error:
            raise AssertionError(f"{number}: {kill}: {error}") from error
        found[case.found] = found.get(case.found, 0) + 1
        if case.loss_s is not None:
            losses.append(case.loss_s)
    losses.sort()
    print(f"\n{found}; lost, in s, of {len(losses)}: median {losses[len(losses) // 2]:.2f}, "
          f"p95 {losses[int(len(losses) * 0.95)]:.2f}, most {losses[-1]:.2f}")
