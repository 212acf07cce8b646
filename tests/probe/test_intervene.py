"""Interventions change how loaders are made, never what they yield."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.probe.reading import Ran, run, together


def loaders(tmp_path: Path, wanted: dict[str, Any] | None) -> Ran:
    env = {} if wanted is None else {"STEPSCOPE_INTERVENE": json.dumps(wanted)}
    ran = run(tmp_path, "loaders.py", env=env)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran


@pytest.fixture(scope="module")
def all_three(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Without an intervention, with more workers, and with none."""
    path = tmp_path_factory.mktemp("loaders")
    more = {"num_workers": 2, "prefetch_factor": 4, "persistent_workers": True}
    none = {"num_workers": 0, "prefetch_factor": 2, "cached_batch": True}
    return together(lambda: loaders(path / "bare", None), lambda: loaders(path / "more", more),
                    lambda: loaders(path / "none", none))


def test_more_workers(all_three: list[Ran]) -> None:
    bare, ran, _ = all_three
    assert [row[:4] for row in ran.said] == [[2, 4, False, True]] * 3 + [[2, 4, True, True]]
    assert [row[4] for row in ran.said] == [row[4] for row in bare.said]
    assert ran.stdout.splitlines()[0] == bare.stdout.splitlines()[0]  # the error is torch's own
    told = ran.only.events("intervention")
    assert len(told) == 4
    assert told[0]["data"] == {
        "from": {"num_workers": 0, "prefetch_factor": None, "pin_memory": False, "persistent_workers": False},
        "to": {"num_workers": 2, "prefetch_factor": 4, "pin_memory": False, "persistent_workers": True}}


def test_no_workers_drops_what_needs_them(all_three: list[Ran]) -> None:
    bare, _, ran = all_three
    assert [row[:4] for row in ran.said] == [[0, None, False, False]] * 3 + [[0, None, True, False]]
    assert [row[4] for row in ran.said] == [row[4] for row in bare.said]
    assert len(ran.only.events("intervention")) == 1
    (unknown,) = ran.only.events("intervention_unknown")
    assert unknown["data"] == {"settings": ["cached_batch"]}
