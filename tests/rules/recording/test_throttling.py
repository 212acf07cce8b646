"""The rule of throttling on planned runs: reasons as intervals of the loop's time; clocks held down."""

import pytest

from profiler.rules.numbers import MOST_INTERVALS
from profiler.rules.numbers import throttling as told
from profiler.rules.recording import throttling
from tests.rules.recording.gpu_runs import evidence, finding, gpu_facts, memory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


def planned(path, mask, steps=200):
    """10 s of steps, and reasons by the tick of 100 ms."""
    return gpu_facts(path, steps=steps, stages={"forward": 50.0}, lag={"data": 5.0},
                     gpu={"gpu.throttle": mask, "gpu.util": 0.9, "gpu.clock_sm": 1500})


def test_throttling_costs_what_its_steps_take_longer(path):
    gpu = {"gpu.throttle": lambda k: 0x20 if 30 <= k < 60 else 0x1, "gpu.util": 0.9, "gpu.clock_sm": 1500}
    facts = gpu_facts(path, steps=200, gpu=gpu, lag={"data": 5.0},
                      stages={"forward": lambda k: 60.0 if 42 <= k < 92 else 50.0})
    found = finding(throttling, facts)
    assert evidence(found, "Steps in these times") == pytest.approx(60, abs=0.1)
    assert evidence(found, "Other steps") == pytest.approx(50, abs=0.1)
    assert found.cost_ms == pytest.approx(10 * 50 / 199, rel=0.3)
    assert evidence(found, "Highest SM clock") == 1980


def test_each_reason_has_its_intervals_and_time(path):
    """Power capped for 4 s, hot for 2 of them, hot again later for 1 s."""
    def mask(k):
        return (0x4 if 20 <= k < 60 else 0) | (0x20 if 30 <= k < 50 or 80 <= k < 90 else 0)

    facts = planned(path, mask)
    found = finding(throttling, facts)
    assert evidence(found, "power cap (software), in 1 interval") == pytest.approx(4.0, abs=0.01)
    assert evidence(found, "thermal (software), in 2 intervals") == pytest.approx(3.0, abs=0.01)
    assert evidence(found, "Throttled") == pytest.approx(5.0, abs=0.01)
    assert evidence(found, "Of the loop's time") == pytest.approx(0.5, abs=0.01)
    figures = told(facts)
    assert [(one["reason"], one["intervals"]) for one in figures["reasons"]] == [
        ("power cap (software)", 1), ("thermal (software)", 2)]
    assert figures["reasons"][1]["longest_s"] == pytest.approx(2.0, abs=0.01)
    assert figures["s"] == pytest.approx(5.0, abs=0.01) and figures["known_s"] == pytest.approx(10, abs=0.1)
    assert [(one["reasons"], pytest.approx(one["held_s"], abs=0.01)) for one in figures["intervals"]] == [
        (["power cap (software)"], 4.0), (["thermal (software)"], 2.0), (["thermal (software)"], 1.0)]
    assert figures["more"] == 0


def test_a_reason_that_comes_and_goes_with_each_sample_is_half_the_time_and_one_interval_to_read(path):
    facts = planned(path, lambda k: 0x4 * (k % 2))
    found = finding(throttling, facts)
    assert evidence(found, "Of the loop's time") == pytest.approx(0.5, abs=0.02)
    assert evidence(found, "power cap (software), in 51 intervals") == pytest.approx(5.1, abs=0.01)
    (one,) = told(facts)["intervals"]
    assert one["held_s"] == pytest.approx(5.0, abs=0.1)
    assert one["t1_ns"] - one["t0_ns"] == pytest.approx(9.9e9, abs=0.2e9)


def test_a_gap_in_the_readings_ends_an_interval_and_its_time_is_not_known(path):
    facts = planned(path, lambda k: None if 40 <= k < 80 else 0x20 if 30 <= k < 90 else 0)
    found = finding(throttling, facts)
    assert evidence(found, "thermal (software), in 2 intervals") == pytest.approx(2.0, abs=0.01)
    assert evidence(found, "Of the 6.0 s of the loop's 10 s") == pytest.approx(2 / 6, abs=0.01)
    assert told(facts)["known_s"] == pytest.approx(6.0, abs=0.1)


@pytest.mark.parametrize("mask", [lambda k: None, lambda k: 0x1 if k < 50 else None])
def test_reasons_that_were_not_read_are_not_called_none(path, mask):
    outcome = throttling.check(planned(path, mask))
    if mask(0) is None:
        assert outcome.lacks and not outcome.ruled_out
        assert told(planned(path.with_name("b.stepscope"), mask)) is None
    else:
        assert outcome.ruled_out == "0.0 s of the 4.5 s of 10 s that are known"


def test_an_instant_of_heat_beside_a_power_cap_is_no_warning(path):
    facts = planned(path, lambda k: 0x24 if k == 50 else 0x4 if k >= 10 else 0, steps=400)
    found = finding(throttling, facts)
    assert found.severity == "info" and "power limit" in found.advice
    longer = planned(path.with_name("b.stepscope"), lambda k: 0x24 if 50 <= k < 80 else 0x4)
    assert finding(throttling, longer).severity == "warning"


def test_intervals_that_are_told_are_few(path):
    facts = gpu_facts(path, steps=700, stages={"forward": 1000.0}, lag={"data": 5.0},
                      gpu={"gpu.throttle": lambda k: 0x20 * (k % 60 < 20), "gpu.util": 0.9})
    figures = told(facts)
    assert len(figures["intervals"]) == MOST_INTERVALS and figures["more"] == pytest.approx(16, abs=2)
    assert figures["reasons"][0]["intervals"] == MOST_INTERVALS + figures["more"]


@pytest.mark.parametrize(("wanted", "clock", "util", "held"), [
    (1200, 1199, 0.9, True), (1200, 1900, 0.9, False),  # the card does not keep to it
    (1980, 1979, 0.9, False), (1200, 1199, 0.1, False)])
def test_a_clock_that_a_setting_holds_down_is_told_apart_from_throttling(path, wanted, clock, util, held):
    gpu = {"gpu.throttle": 0x2, "gpu.util": util, "gpu.clock_sm": clock}
    facts = gpu_facts(path, torch=memory(), gpu=gpu, device_is={"app_clock_sm": wanted})
    outcome = throttling.check(facts)
    assert bool(outcome.findings) is held and bool(outcome.ruled_out) is not held
    if held:
        assert "by a setting" in outcome.findings[0].title
        assert evidence(outcome.findings[0], "SM clock set for applications") == 1200


def test_a_lowered_power_limit_stands_beside_the_one_that_the_card_comes_with(path):
    gpu = {"gpu.throttle": 0x4, "gpu.util": 0.9, "gpu.clock_sm": 1500, "gpu.power": 400}
    lowered = {"power_limit_w": 400.0, "power_limit_default_w": 700.0}
    found = finding(throttling, gpu_facts(path, torch=memory(), gpu=gpu, device_is=lowered))
    assert evidence(found, "Power limit that") == 700 and "lowered" in found.advice
    usual = gpu_facts(path.with_name("b.stepscope"), torch=memory(), gpu=gpu,
                      device_is={"power_limit_default_w": 700.0})
    assert not any("comes with" in e.text for e in finding(throttling, usual).evidence)
