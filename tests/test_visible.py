"""CUDA_VISIBLE_DEVICES in every form, as the CUDA runtime reads it."""

from __future__ import annotations

import pytest

from profiler.visible import Card, also_named, resolve

CARDS = [Card("GPU-aa12", "H100"), Card("GPU-bb34", "H100"), Card("GPU-bb56", "H100")]
SPLIT = [Card("GPU-aa12", "A100", {"MIG-11": "MIG-GPU-aa12/7/0", "MIG-12": "MIG-GPU-aa12/8/0"}),
         Card("GPU-bb34", "A100")]
DIFFERENT = [Card("GPU-aa12", "RTX 3060"), Card("GPU-bb34", "H100")]


@pytest.mark.parametrize(("named", "seen"), [
    (None, [0, 1, 2]), ("", []), (" ", []), ("-1", []), ("NoDevFiles", []), ("1", [1]), ("2,0", [2, 0]),
    ("0,2,-1,1", [0, 2]), ("0,3,1", [0]), ("1, 0", [1, 0]), ("+1", [1]), ("1gpu2,2ampere", [1, 2]),
    ("0,0", []), ("0,1,0", []), ("0,,1", [0]), ("99999999999999999999", []),
    ("GPU-bb34", [1]), ("GPU-a", [0]), ("GPU-bb", []), ("GPU-", []), ("GPU-bb56,GPU-aa", [2, 0]),
    ("GPU-aa,GPU-aa12", []), ("GPU-aa,7,GPU-bb34", [0]), ("GPU-aa,1", [0]), ("0,GPU-bb34", [0]),
    ("GPU-zz,GPU-aa", []), ("MIG-11", []), ("gpu-aa12", []),
])
def test_cards(named: str | None, seen: list[int]) -> None:
    environment = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
    assert resolve(CARDS, environment) == [CARDS[index].uuid for index in seen]


@pytest.mark.parametrize(("named", "seen"), [
    (None, ["MIG-11"]), ("0", ["MIG-11"]), ("1", ["GPU-bb34"]), ("MIG-12", ["MIG-12"]), ("MIG-1", []),
    ("MIG-12,MIG-11", ["MIG-12"]), ("MIG-GPU-aa12/8/0", ["MIG-12"]), ("MIG-GPU-aa12/9/0", []),
    ("GPU-bb34", ["GPU-bb34"]), ("GPU-aa12", []), ("", []),
])
def test_a_process_sees_one_slice(named: str | None, seen: list[str]) -> None:
    assert resolve(SPLIT, {} if named is None else {"CUDA_VISIBLE_DEVICES": named}) == seen


def test_indices_of_different_cards_mean_something_in_the_order_of_the_bus_alone() -> None:
    assert resolve(DIFFERENT, {"CUDA_VISIBLE_DEVICES": "1"}) is None and resolve(DIFFERENT, {}) is None
    by_bus = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}
    assert resolve(DIFFERENT, by_bus) == ["GPU-bb34"]
    assert resolve(DIFFERENT, {"CUDA_VISIBLE_DEVICES": "GPU-aa"}) == ["GPU-aa12"]
    assert resolve(DIFFERENT, {"CUDA_VISIBLE_DEVICES": "-1"}) == []
    assert resolve([], {}) == []


def test_a_slice_has_the_names_that_a_program_has_from_cuda() -> None:
    of_card = {"mig_parent": "GPU-aa12", "cuda_visible": True}
    assert also_named("MIG-11", of_card) == ("GPU-11", "GPU-aa12")
    assert also_named("MIG-11", {**of_card, "cuda_visible": False}) == ("GPU-11",)  # another is shown
    assert also_named("GPU-aa12", {"cuda_visible": True}) == ()
