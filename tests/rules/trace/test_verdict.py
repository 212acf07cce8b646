"""The verdict from shares and predicted speedups: definitions, section 5, sentence by sentence."""

import pytest

from profiler.rules.trace.verdict import Shares, decide

MS = 1_000_000


def shares(launching=0.0, steps=5, **classes):
    """Shares of a window of 100 ms; compute is the rest."""
    rest = 100.0 - sum(classes.values())
    told = {name.replace("__", ":"): value * MS for name, value in classes.items()}
    return Shares(100.0 * MS, {"compute": rest * MS, **told}, launching * MS, steps)


def verdict(share, error=0.001, withheld="", **speedups):
    found = decide(share, speedups, error, withheld, 100 * MS)
    return found.verdict, set(found.also), found.confidence


def test_the_largest_gain_names_the_bottleneck_though_another_class_is_larger():
    assert verdict(shares(sync=14, input_wait=10), no_sync=1.06, no_input_wait=1.30) == (
        "input_bound", set(), "high")


@pytest.mark.parametrize(("smaller", "also"), [(1.271, {"sync_bound"}), (1.269, set())])
def test_a_gain_of_nine_tenths_is_named_as_well(smaller, also):
    assert verdict(shares(), no_input_wait=1.30, no_sync=smaller)[1] == also


@pytest.mark.parametrize(("word", "names"), [
    ("transfer_bound", ("no_transfer", "overlapped_transfer")),
    ("communication_bound", ("no_communication", "overlapped_communication"))])
def test_of_two_scenarios_the_better_counts(word, names):
    for name in names:
        assert verdict(shares(), no_sync=1.2, **{names[0]: 1.0, names[1]: 1.0, name: 1.3})[0] == word


def test_compute_half_never_competes():
    assert verdict(shares(queued=5), compute_half=1.9, no_sync=1.0)[0] == "compute_bound"


CLASSES = [
    ("input_wait", "input_bound"), ("transfer_exposed", "transfer_bound"),
    ("transfer_host", "transfer_bound"),
    ("communication_exposed", "communication_bound"), ("sync", "sync_bound"),
    ("allocator", "allocator_bound"), ("queued", "launch_bound"), ("host", "host_bound"),
    ("other__evaluate", "host_bound")]


@pytest.mark.parametrize(("name", "word"), CLASSES)
def test_a_class_above_fifteen_percent_is_named_as_well(name, word):
    scenario = {"no_input_wait": 1.3} if word != "input_bound" else {"no_sync": 1.3}
    assert verdict(shares(**{name: 15.1}), **scenario)[1] == {word}
    assert verdict(shares(**{name: 14.9}), **scenario)[1] == set()


def test_host_time_between_the_launches_is_launching():
    assert verdict(shares(host=20, launching=20), no_input_wait=1.3)[1] == {"launch_bound"}
    assert verdict(shares(host=40, launching=20), no_input_wait=1.3)[1] == {"launch_bound", "host_bound"}
    assert verdict(shares(host=20, launching=4), no_input_wait=1.3)[1] == {"host_bound"}


@pytest.mark.parametrize(("gain", "rest", "word"), [
    (1.04, 14, "compute_bound"), (1.04, 16, "unknown"), (1.06, 14, "sync_bound"), (1.06, 16, "sync_bound")])
def test_compute_bound_needs_85_percent_and_no_gain_above_5(gain, rest, word):
    assert verdict(shares(queued=rest), no_sync=gain)[0] == word


def test_unknown_says_why_and_is_not_sure():
    found = decide(shares(queued=10, host=10), {"no_sync": 1.01}, 0.0)
    assert found.verdict == "unknown" and found.confidence == "low" and "80 %" in found.reason


@pytest.mark.parametrize(("name", "word"), CLASSES)
def test_without_predictions_the_largest_class_decides_and_confidence_is_low(name, word):
    assert verdict(shares(**{name: 30, "queued": 2} if name != "queued" else {name: 30}),
                   withheld="the replay is 7 % off") == (word, set(), "low")


def test_without_predictions_small_classes_name_nothing():
    assert verdict(shares(queued=4.9, sync=4.9, host=4.9, input_wait=4.9), withheld="none")[0] == "unknown"
    assert verdict(shares(queued=14), withheld="none")[0] == "compute_bound"


@pytest.mark.parametrize("speedups", [{}, {"no_sync": 1.01}])
def test_waiting_for_another_device_has_no_word_and_is_the_reason_where_it_is_largest(speedups):
    found = decide(shares(queued__peer=30, queued=10), speedups, 0.0, "" if speedups else "none")
    assert found.verdict == "unknown" and found.also == () and "another device" in found.reason
    smaller = decide(shares(queued__peer=20, queued=30), speedups, 0.0, "" if speedups else "none")
    assert "another device" not in smaller.reason
    assert ({smaller.verdict, *smaller.also} - {"unknown"}) == {"launch_bound"}


def test_the_reason_names_a_class_in_words():
    reason = decide(shares(communication_exposed=20), {}, None, "none", 100 * MS).reason
    assert reason == "communication, exposed is the largest class beside compute, 20 % of the time; none"


def test_predictions_of_a_replay_that_is_withheld_are_not_used():
    assert verdict(shares(queued=30), withheld="the replay is 7 % off", no_sync=2.0)[0] == "launch_bound"


@pytest.mark.parametrize(("change", "confidence"), [
    ({}, "high"), ({"error": 0.03}, "medium"), ({"no_sync": 1.07}, "medium")])
def test_confidence_needs_an_exact_replay_and_a_clear_gain(change, confidence):
    assert verdict(shares(sync=10), **{"error": 0.001, "no_sync": 1.2, **change})[2] == confidence
    assert verdict(shares(sync=10, steps=1), no_sync=1.2)[2] == "medium"


def test_an_empty_window_is_unknown():
    assert decide(Shares(0.0, {}, 0.0, 0), {}, None).verdict == "unknown"
