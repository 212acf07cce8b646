"""Ranks that wait for each other, from their stages."""

from types import SimpleNamespace

import pytest

from profiler.analysis.together import waits


def rank(forward, backward, device=None):
    return SimpleNamespace(step_ns=forward + backward + 5, stages={"forward": forward, "backward": backward},
                           device={} if device is None else {"backward": device})


def test_the_others_wait_for_the_rank_with_the_long_forward():
    assert waits([rank(10, 40), rank(25, 25), rank(12, 38)], on_device=False) == [15, 0, 13]


def test_on_a_device_the_devices_times_tell():
    ranks = [rank(5, 5, device=40), rank(5, 5, device=22)]
    assert waits(ranks, on_device=True) == [18, 0]
    assert waits([rank(5, 5), rank(5, 5, device=22)], on_device=True) is None


@pytest.mark.parametrize("ranks", [
    [rank(10, 20)],                 # alone
    [rank(10, 20), rank(30, 20)],   # steps of their own length: they do not wait for each other
    [rank(30, 0), rank(30, 0)],     # nothing is trained
])
def test_ranks_of_which_nothing_can_be_told(ranks):
    assert waits(ranks, on_device=False) is None
