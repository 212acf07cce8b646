"""A disk that fills up at any moment: the run keeps what it had, the command goes on, the user is told."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.fakes import disk
from tests.record.disks import Recording, planned

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("cc") is None,
                                reason="preloads a library that is compiled here")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return disk.build(tmp_path_factory.mktemp("disk"))


@pytest.mark.parametrize("number", range(7))
def test_s09_the_disk_fills_up_at_a_random_moment(tmp_path: Path, library: Path, number: int) -> None:
    Recording(tmp_path / "a", library, planned(7, seed=3)[number]).go()


@pytest.mark.slow
def test_s09_the_disk_fills_up_at_two_hundred_random_moments(tmp_path: Path, library: Path) -> None:
    outcomes: dict[str, int] = {}
    for number, trouble in enumerate(planned(200, seed=2026)):
        case = Recording(tmp_path / str(number), library, trouble)
        try:
            case.go()
        except AssertionError as error:
            raise AssertionError(f"{number}: {trouble}: {error}") from error
        outcomes[case.outcome] = outcomes.get(case.outcome, 0) + 1
    print(f"\n{outcomes}")
    assert {"whole", "stopped", "went on", "not begun"} <= outcomes.keys()
