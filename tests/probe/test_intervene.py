"""Interventions: what the loop gets is what was asked for, and the run says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.probe.reading import EPOCH_FIRST, Ran, run, together

FIRST = [0.0, 1.0]  # what is in the first batch of two
EVALUATED = [FIRST, [2.0, 3.0], [4.0, 5.0]] * 3


def changed(tmp_path: Path, wanted: dict[str, Any] | None, script: str = "changed.py", *kinds: str) -> Ran:
    env = {} if wanted is None else {"STEPSCOPE_INTERVENE": json.dumps(wanted)}
    ran = run(tmp_path, script, *kinds, env=env)
    assert ran.returncode == 0, ran.stderr
    return ran


def applied(ran: Ran) -> list[str]:
    return [event["data"]["setting"] for event in ran.only.events("intervention")]


@pytest.fixture(scope="module")
def loaders(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Without an intervention, with more workers, and with none."""
    path = tmp_path_factory.mktemp("loaders")
    more = {"num_workers": 2, "prefetch_factor": 4, "persistent_workers": True}
    none = {"num_workers": 0, "prefetch_factor": 2, "unheard_of": True, "threads": 0, "pin_memory": None}
    ran = together(lambda: changed(path / "bare", None, "loaders.py"),
                   lambda: changed(path / "more", more, "loaders.py"),
                   lambda: changed(path / "none", none, "loaders.py"))
    assert [one.stderr for one in ran] == [""] * 3
    return ran


def test_more_workers(loaders: list[Ran]) -> None:
    bare, ran, _ = loaders
    assert [row[:4] for row in ran.said] == [[2, 4, False, True]] * 3 + [[2, 4, True, True]]
    assert [row[4] for row in ran.said] == [row[4] for row in bare.said]
    assert ran.stdout.splitlines()[0] == bare.stdout.splitlines()[0]  # the error is torch's own
    told = ran.only.events("intervention")
    assert len(told) == 4
    assert told[0]["data"] == {
        "from": {"num_workers": 0, "prefetch_factor": None, "pin_memory": False, "persistent_workers": False},
        "to": {"num_workers": 2, "prefetch_factor": 4, "pin_memory": False, "persistent_workers": True}}


def test_no_workers_drops_what_needs_them(loaders: list[Ran]) -> None:
    bare, _, ran = loaders
    assert [row[:4] for row in ran.said] == [[0, None, False, False]] * 3 + [[0, None, True, False]]
    assert [row[4] for row in ran.said] == [row[4] for row in bare.said]
    assert len(ran.only.events("intervention")) == 1


def test_unknown_settings_and_values_are_told(loaders: list[Ran]) -> None:
    (unknown,) = loaders[2].only.events("intervention_unknown")
    assert unknown["data"] == {"settings": ["unheard_of"]}
    (wrong,) = loaders[2].only.events("intervention_failed")
    assert wrong["data"] == {"setting": "threads", "reason": "0 is not a whole number from 1"}


CACHED = ("plain", "by_hand", "stream", "workers", "repeating", "fresh_workers")
WANTED: dict[str, tuple[dict[str, Any] | None, tuple[str, ...]]] = {
    "bare": (None, ("plain", "by_hand", "stream", "whole")),
    "cached": ({"cached_batch": True}, CACHED),
    "forward": ({"forward_only": True, "threads": 2, "matmul_precision": "medium"},
                ("own_settings", "whole")),
    "alone": ({"loader_only": 23}, ("workers",)),
}
RARE: dict[str, tuple[dict[str, Any] | None, tuple[str, ...]]] = {
    "inference": ({"cached_batch": True, "inference": True}, ("inference", "endless")),
    "not told of": ({"device_batch": True}, ("inference",)),
    "on the cpu": ({"device_batch": True}, ("fresh_workers",)),
    "copied": ({"device_batch": True}, ("copied",)),
    "thread": ({"cached_batch": True}, ("in_a_thread",)),
    "alone for each": ({"loader_only": 12, "inference": True}, ("inference",)),
}


def several(path: Path, wanted: dict[str, tuple[dict[str, Any] | None, tuple[str, ...]]]) -> dict[str, Ran]:
    def one(name: str) -> Ran:
        settings, kinds = wanted[name]
        return changed(path / name.replace(" ", "-"), settings, "changed.py", *kinds)

    return dict(zip(wanted, together(*(lambda name=name: one(name) for name in wanted)), strict=True))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    return several(tmp_path_factory.mktemp("changed"), WANTED)


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    return several(tmp_path_factory.mktemp("rare"), RARE)


@pytest.mark.parametrize(("kind", "loaded"), [
    ("plain", 2 + 18),  # the first batch, and three evaluations
    ("by_hand", 3), ("stream", 2 * 4),  # a new loader each epoch has a first batch of its own
    ("workers", 18), ("repeating", 0), ("fresh_workers", 18)])
def test_the_first_batch_again_and_again(ran: dict[str, Ran], kind: str, loaded: int) -> None:
    said = ran["cached"].said[kind]
    assert said["got"] == [said["got"][0]] * len(said["got"])
    assert said["asked"] == loaded
    if kind in ran["bare"].said:
        bare = ran["bare"].said[kind]
        assert len(said["got"]) == len(bare["got"]) and said["got"][0] == bare["got"][0]
        assert said.get("kinds") == bare.get("kinds") and said.get("ends") == bare.get("ends")


def test_other_loaders_are_left_alone(ran: dict[str, Ran]) -> None:
    for said in (ran["cached"].said[kind] for kind in ("plain", "workers", "fresh_workers")):
        assert said["seen"] == EVALUATED and said["ends"] == [5, 10, 15] and said["got"][0] == FIRST


def test_each_intervention_tells_of_itself(ran: dict[str, Ran]) -> None:
    assert applied(ran["cached"]) == ["cached_batch"]
    assert applied(ran["alone"]) == ["loader_only"]
    assert not ran["cached"].only.events("intervention_failed")
    assert not ran["bare"].only.events("intervention")


@pytest.mark.slow
def test_on_a_cpu_the_batch_is_kept_and_no_more(rare: dict[str, Ran]) -> None:
    (event,) = rare["on the cpu"].only.events("intervention")
    assert event["data"] == {"setting": "device_batch", "value": True, "on": "cpu"}
    assert "no device" in event["text"]


@pytest.mark.slow
def test_a_loop_without_backward(rare: dict[str, Ran]) -> None:
    assert rare["inference"].said["inference"]["got"] == [FIRST] * 8
    (event,) = rare["not told of"].only.events("intervention_failed")
    assert event["data"]["setting"] == "device_batch" and "no loader" in event["text"]
    assert rare["not told of"].said["inference"]["got"][:2] == [FIRST, [2.0, 3.0]]


@pytest.mark.slow
def test_a_loader_that_another_thread_reads_is_left_alone(rare: dict[str, Ran]) -> None:
    (event,) = rare["thread"].only.events("intervention_failed")
    assert event["data"]["reason"] == "another thread than the loop's reads the loader"
    assert len(set(map(tuple, rare["thread"].said["in_a_thread"]["got"]))) == 6


@pytest.mark.slow
def test_a_stream_of_unknown_length_has_no_end(rare: dict[str, Ran]) -> None:
    assert len(rare["inference"].said["endless"]["got"]) > 2 * 12 / 4
    assert len(rare["inference"].only.events("intervention_endless")) == 1


@pytest.mark.slow
def test_a_copy_of_the_batch_is_made_once(rare: dict[str, Ran]) -> None:
    said = rare["copied"].said["copied"]
    # the first batch went to the loop before it was known; the fifth result was written into
    assert said["same"] == [True, True, True, False, True, True]
    assert said["made"] == 1
    (event,) = rare["copied"].only.events("intervention")
    assert event["data"]["by"] == "copies made once"


def test_forward_alone(ran: dict[str, Ran]) -> None:
    bare, said = ran["bare"].said["whole"], ran["forward"].said["whole"]
    assert bare["weights"] == 10 and said["weights"] == 1  # after the first step nothing is updated
    assert said["gradients"] == 10  # gradients that the loop asks for are its own computing
    assert len(ran["forward"].only.training) == 10 + 3


def test_the_loader_alone(ran: dict[str, Ran]) -> None:
    process = ran["alone"].only
    steps = process.training
    assert ran["alone"].stdout == "" and len(steps) == 1 + 23
    assert {s["samples"] for s in steps} == {2}
    assert [s["forward"] > 0 for s in steps] == [True] + [False] * 23
    # five batches in an epoch, of which the loop has had the first
    assert [k for k, s in enumerate(steps) if s["flags"] & EPOCH_FIRST] == [0, 5, 10, 15, 20]
    assert not process.evaluation


@pytest.mark.slow
def test_a_loader_that_only_the_loop_holds_is_started_again(rare: dict[str, Ran]) -> None:
    assert len(rare["alone for each"].only.steps) == 1 + 12


def test_switches_hold_against_the_programs_own(ran: dict[str, Ran]) -> None:
    said = ran["forward"].said["own_settings"]
    assert (said["threads"], said["precision"]) == (2, "medium")
    # set when torch came in, and again when the program had set its own
    assert sorted(applied(ran["forward"])) == ["forward_only", *["matmul_precision"] * 2, *["threads"] * 2]
