"""Ranks that wait for each other, from their stages."""

from types import SimpleNamespace

import pytest

from profiler.analysis.together import waits


def rank(forward, backward, device=None, cpu=None):
    return SimpleNamespace(step_ns=forward + backward + 5, stages={"forward": forward, "backward": backward},
                           device={} if device is None else {"backward": device}, thread_cpu=cpu)


def test_the_others_wait_for_the_rank_with_the_long_forward():
    assert waits([rank(10, 40), rank(25, 25), rank(12, 38)], on_device=False) == [15, 0, 13]


def test_on_a_device_the_devices_times_tell():
    ranks = [rank(5, 5, device=40), rank(5, 5, device=22)]
    assert waits(ranks, on_device=True) == [18, 0]
    assert waits([rank(5, 5), rank(5, 5, device=22)], on_device=True) is None


def test_a_rank_whose_core_others_had_is_no_straggler():
    """Even ranks on a busy machine: what one waits longer for a core, the other waits for it."""
    even = [rank(19, 49, cpu=18.4), rank(13, 55, cpu=17.7)]
    assert waits(even, False, [0.64, 0.52]) == [0, 0]
    assert waits(even, False, [0.64, None]) == waits(even, False) == [0, 6]


def test_a_rank_that_works_more_waits_more_for_a_core():
    uneven = [rank(12, 106, cpu=16.6), rank(86, 32, cpu=47.6)]
    assert waits(uneven, False, [0.24, 0.58]) == [74, 0]


@pytest.mark.parametrize("ranks", [
    [rank(10, 20)],                 # alone
    [rank(10, 20), rank(30, 20)],   # steps of their own length: they do not wait for each other
    [rank(30, 0), rank(30, 0)],     # nothing is trained
])
def test_ranks_of_which_nothing_can_be_told(ranks):
    assert waits(ranks, on_device=False) is None
