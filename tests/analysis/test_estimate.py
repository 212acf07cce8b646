"""Where a step's time goes, from stages and lag."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.estimate import estimate
from profiler.model import STAGES
from tests.runs import STAGE_MS

MS = 1e6
NAMES = ("input", "transfer", "compute", "host")


def summary(stages, device=None, lag=None, exposed=None, sync=None, cpu=None, data_cpu=None):
    full = {s: stages.get(s, 0.0) * MS for s in STAGES}
    device, lag = ({k: v * MS for k, v in (group or {}).items()} for group in (device, lag))
    return SimpleNamespace(
        stages=full, step_ns=sum(full.values()), exposed=None if exposed is None else exposed * MS,
        device=device, lag=lag, thread_cpu=None if cpu is None else cpu * MS,
        data_cpu=None if data_cpu is None else data_cpu * MS,
        sync=None if sync is None else sync * MS)


def shares(found):
    return {name: round(getattr(found, name) / MS, 6) for name in NAMES}


def test_on_a_cpu_run_the_stages_are_the_classes():
    found = estimate(summary({"data": 10, "forward": 20, "backward": 30, "optimizer": 5, "other": 2}), False)
    assert shares(found) == {"input": 10, "transfer": 0, "compute": 55, "host": 2}


CROWDED = {"data": 2.5, "forward": 11, "backward": 25, "optimizer": 6.5, "other": 1}


def test_a_wait_for_a_core_is_no_wait_for_data():
    """Of 46 ms the thread ran 16, and could have run in all others."""
    found = estimate(summary(CROWDED, cpu=16, data_cpu=0.35), False, waiting=30 / 46)
    assert shares(found) == {"input": pytest.approx(0.35 * 46 / 16), "transfer": 0, "host": 1,
                             "compute": pytest.approx(45 - 0.35 * 46 / 16)}
    slept = estimate(summary(CROWDED, cpu=16, data_cpu=0.35), False, waiting=28 / 46)
    assert shares(slept)["input"] == pytest.approx(0.6 + 0.35 * 45.4 / 16)  # as far as can be told


@pytest.mark.parametrize("known", [{"waiting": None}, {"waiting": 0.04}])
def test_without_a_crowd_the_stages_stay_as_they_are(known):
    found = estimate(summary(CROWDED, cpu=16, data_cpu=0.35), False, **known)
    assert shares(found)["input"] == 2.5 and shares(found)["host"] == 1


@given(waiting=st.floats(0, 1), cpu=st.floats(0, 46), data_cpu=st.floats(0, 3))
def test_classes_of_a_crowded_step_sum_to_it(waiting, cpu, data_cpu):
    found = estimate(summary(CROWDED, cpu=cpu, data_cpu=data_cpu), False, waiting=waiting)
    assert found.step_ns == pytest.approx(46 * MS) and found.compute >= 42.5 * MS
    assert 0 <= found.input <= 2.5 * MS and found.host == 1 * MS


@given(st.floats(0, 100))
def test_waiting_for_ranks_is_taken_from_compute_then_from_the_host(ns):
    plain = estimate(summary(CROWDED), False)
    found = plain.waiting(ns * MS)
    assert found.step_ns == pytest.approx(plain.step_ns) and found.input == plain.input
    assert found.communication == pytest.approx(min(ns * MS, plain.compute + plain.host))
    assert found.compute >= 0 and (found.host == plain.host or not found.compute)


def test_the_story_of_the_mockups():
    device = {"h2d": 2.6, "forward": 5.1, "backward": 9.9, "optimizer": 1.2}
    lag = {"data": 5.3, "h2d": 0.0, "forward": 0.0, "backward": 0.2, "optimizer": 5.6}
    found = estimate(summary(STAGE_MS, device, lag, exposed=30.9), True, 0.31)
    assert shares(found)["input"] == 30.9 and shares(found)["transfer"] == 2.6
    assert shares(found)["compute"] == pytest.approx(16.2, abs=0.1)
    without_nvml = estimate(summary(STAGE_MS, device, lag, exposed=30.9), True)
    assert shares(without_nvml)["compute"] == pytest.approx(11.1)  # the forward may be idle or not


def test_a_device_that_never_catches_up_computes_all_the_time():
    stages = {"data": 1, "h2d": 1, "forward": 5, "backward": 6, "optimizer": 2, "other": 85}
    device = {"h2d": 1, "forward": 33, "backward": 60, "optimizer": 5}
    lag = {"data": 90, "h2d": 90, "forward": 90, "backward": 118, "optimizer": 172}
    found = estimate(summary(stages, device, lag, exposed=0), True)
    assert found.share("compute") > 0.97


def test_a_device_that_keeps_up_waits_for_the_host():
    stages = {"data": 1, "h2d": 1, "forward": 40, "backward": 50, "optimizer": 8}
    device = {"h2d": 0.5, "forward": 40, "backward": 50, "optimizer": 8}
    lag = dict.fromkeys(("data", "h2d", "forward", "backward", "optimizer"), 0.02)
    found = estimate(summary(stages, device, lag, exposed=1), True, 0.08)
    assert found.share("host") > 0.85 and found.share("compute") < 0.1


def test_time_in_a_blocking_read_is_the_device_s():
    stages = {"data": 1, "forward": 60, "backward": 30, "optimizer": 9}
    device = {"h2d": 0.0, "forward": 60, "backward": 30, "optimizer": 9}
    lag = dict.fromkeys(("data", "h2d", "forward", "backward", "optimizer"), 0.0)
    assert estimate(summary(stages, device, lag, exposed=1, sync=50), True).compute == 50 * MS


def test_without_lag_utilization_bounds_what_is_hidden():
    stages = {"data": 60, "h2d": 5, "forward": 20, "backward": 10, "optimizer": 5}
    assert estimate(summary(stages), True, 0.9).input == pytest.approx(10 * MS)
    assert estimate(summary(stages), True, 0.2).input == pytest.approx(60 * MS)
    assert not estimate(summary(stages), True, 0.2).measured


TIMES = st.fixed_dictionaries({s: st.floats(0, 1000) for s in STAGES})
DEVICE = st.fixed_dictionaries({s: st.floats(0, 1000) for s in ("h2d", "forward", "backward", "optimizer")})
LAG = st.fixed_dictionaries(
    {s: st.floats(0, 1000) for s in ("data", "h2d", "forward", "backward", "optimizer")})


@given(TIMES, DEVICE, LAG, st.none() | st.floats(0, 1), st.booleans(), st.floats(0, 1000), st.booleans())
def test_the_classes_sum_to_the_step_and_none_is_negative(stages, device, lag, util, on_device, sync, known):
    exposed = max(0.0, stages["data"] - lag["data"]) if known else None
    given_summary = summary(stages, device if known else {}, lag if known else {}, exposed, sync)
    found = estimate(given_summary, on_device, util)
    assert found.step_ns == pytest.approx(given_summary.step_ns)
    assert all(getattr(found, name) >= -1e-3 for name in NAMES)
    assert all(found.gain(name) >= 1 - 1e-9 for name in NAMES)
