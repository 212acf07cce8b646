"""HIP's numbers of AMD GPUs under the variables that hide and reorder them."""

from __future__ import annotations

import pytest

from profiler.sources._amd_visible import HipCard, resolve

CARDS = [HipCard("a", "GPU-00000000000000aa", 0), HipCard("b", "GPU-00000000000000bb", 1),
         HipCard("c", "GPU-00000000000000cc", 2)]  # fmt: skip
ROCR, HIP, CUDA = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(("environment", "shown"), [
    ({}, "abc"),
    ({HIP: "2,0"}, "ca"),
    ({CUDA: "2,0"}, "ca"),
    ({HIP: "1", CUDA: "2"}, "b"),  # HIP's own name wins
    ({ROCR: "2,1"}, "cb"),
    ({ROCR: "2,1", HIP: "1"}, "b"),  # it counts among what the runtime left
    ({ROCR: "2,1", HIP: "2"}, ""),
    ({ROCR: "GPU-00000000000000bb,0"}, "ba"),
    ({ROCR: "GPU-00000000000000BB"}, "b"),
    ({HIP: "GPU-00000000000000cc"}, "c"),
    ({ROCR: "GPU-0000"}, ""),  # of several
    ({HIP: "0,7,1"}, "a"),  # what names none ends the list
    ({HIP: "0,-1,1"}, "a"),
    ({HIP: "1,1"}, ""),
    ({HIP: ""}, ""),
    ({ROCR: ""}, ""),
    ({HIP: "1gpu,2"}, "bc"),
])
def test_what_is_shown_and_in_which_order(environment: dict[str, str], shown: str) -> None:
    assert resolve(CARDS, environment) == list(shown)


def test_the_order_is_that_of_hip_and_not_of_the_driver() -> None:
    cards = [HipCard("a", "", 2), HipCard("b", "", 0), HipCard("c", "", 1)]
    assert resolve(cards, {}) == ["b", "c", "a"]
    assert resolve(cards, {HIP: "0"}) == ["b"]


def test_without_hips_numbers_it_is_not_guessed() -> None:
    assert resolve([HipCard("a"), HipCard("b")], {}) is None
    assert resolve([HipCard("a", "", 0), HipCard("b", "", 0)], {}) is None
    assert resolve([HipCard("a")], {}) == ["a"]
