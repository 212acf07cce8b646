"""Energy from readings of one card: counter and power, resets, gaps, readings that cannot be (N13, N14)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.energy import BOUND_W, BUFFER, COUNTER, POWER, Meter, bound, by_counter, by_power

TICK = 100_000_000
START = 1_700_000_000_000_000_000


def ticks(*at: float) -> Any:
    return START + (np.array(at) * TICK).astype(np.int64)


def counter(at: Any, values: Any, most: float = BOUND_W) -> Meter:
    found = by_counter(ticks(*at), np.array(values, float), most)
    assert found is not None
    return found


def power(at: Any, values: Any, most: float = BOUND_W) -> Meter:
    found = by_power(ticks(*at), np.array(values, float), most)
    assert found is not None
    return found


def used(meter: Meter, t0: float, t1: float) -> float:
    return float(meter.used(ticks(t0), ticks(t1))[0])


def known(meter: Meter, t0: float, t1: float) -> tuple[float, float]:
    joules, ns = meter.known(int(ticks(t0)[0]), int(ticks(t1)[0]))
    return joules, ns / TICK


# Both

# Readings of either kind, with gaps, resets and junk: distances in ticks, and values.
READINGS = st.lists(st.tuples(st.sampled_from([1, 1, 1, 1, 2, 3, 4, 50]),
                              st.sampled_from([0.0, 1.0, 30.0, 60.0, 90.0, 1e3, 5e3, 1e9, float("nan")])),
                    min_size=2, max_size=40)
TIMES = st.lists(st.floats(-20, 400), min_size=3, max_size=3).map(sorted)


@given(READINGS, TIMES, st.booleans())
def test_parts_sum_to_the_whole_and_nothing_is_negative_or_too_much(readings: Any, times: Any,
                                                                    counts: bool) -> None:
    at = np.cumsum([distance for distance, _ in readings])
    values = [value for _, value in readings]
    found = (by_counter if counts else by_power)(ticks(*at), np.array(values))
    if found is None:
        return
    t0, t1, t2 = times
    whole, first, second = used(found, t0, t2), used(found, t0, t1), used(found, t1, t2)
    if not np.isnan(first + second):
        assert whole == pytest.approx(first + second, abs=1e-6)
    for joules in (whole, first, second):
        assert np.isnan(joules) or joules >= 0
    parts = [known(found, *ends) for ends in ((t0, t1), (t1, t2), (t0, t2))]
    assert parts[0][0] + parts[1][0] == pytest.approx(parts[2][0], abs=1e-6)
    assert parts[0][1] + parts[1][1] == pytest.approx(parts[2][1], abs=1e-6)
    assert 0 <= parts[2][1] <= t2 - t0 + 1e-6
    assert parts[2][0] <= 3 * BOUND_W * (at[-1] - at[0]) * TICK / 1e9 + 1e-6
    if not np.isnan(whole):
        assert whole == pytest.approx(parts[2][0], abs=1e-6)


@given(st.integers(3, 100), st.floats(1.0, 1500.0), st.floats(0, 1), st.floats(0, 1))
def test_counter_and_power_agree_on_steady_power(n: int, watts: float, a: float, b: float) -> None:
    at = np.arange(n)
    t0, t1 = sorted((a * (n - 1), b * (n - 1)))
    expected = watts * (t1 - t0) * TICK / 1e9
    for meter in (counter(at, 1e6 + watts * at * TICK / 1e9), power(at, np.full(n, watts))):
        assert used(meter, t0, t1) == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("of", [by_counter, by_power])
@pytest.mark.parametrize("values", [[], [5.0], [float("nan")] * 9, [0.0] * 9])
def test_n14_zero_and_nothing_are_unknown(of: Any, values: list[float]) -> None:
    assert of(ticks(*range(len(values))), np.array(values, float)) is None


@pytest.mark.parametrize("of", [by_counter, by_power])
def test_readings_out_of_order_are_left_out(of: Any) -> None:
    t = ticks(0, 1, 2, 1, 2, 3, 4)
    found = of(t, np.array([10.0, 20.0, 30.0, 500.0, 1.0, 40.0, 50.0]))
    assert (np.diff(found.t_ns) > 0).all()
    clean = of(ticks(0, 1, 2, 3, 4), np.array([10.0, 20.0, 30.0, 40.0, 50.0]))
    assert used(found, 0, 4) == used(clean, 0, 4)


def test_outside_the_readings_nothing_is_known() -> None:
    meter = power(range(11), [100.0] * 11)
    assert np.isnan(used(meter, -0.5, 3)) and np.isnan(used(meter, 3, 10.5))
    assert known(meter, -50, 5) == (pytest.approx(50.0), pytest.approx(5))
    assert known(meter, 20, 30) == (0.0, 0.0)


# Counter


def test_n14_a_counter_that_falls_begins_a_new_segment() -> None:
    at = range(10)
    meter = counter(at, [1e6, 1e6 + 30, 1e6 + 60, 1e6 + 90, 50, 80, 110, 140, 170, 200])
    assert meter.resets == 1 and meter.method == COUNTER
    assert used(meter, 0, 3) == pytest.approx(90) and used(meter, 4, 9) == pytest.approx(150)
    assert np.isnan(used(meter, 2, 6))
    assert known(meter, 0, 9) == (pytest.approx(240), pytest.approx(8))


@pytest.mark.parametrize("values", [[9e3, 8e3, 7e3, 1.0], [1.0, 1e9, 5.0, 2e9]])
def test_n14_a_counter_that_only_falls_and_leaps_tells_nothing(values: list[float]) -> None:
    assert by_counter(ticks(0, 1, 2, 3), np.array(values)) is None


def test_n13_a_leap_of_the_counter_is_left_out_and_counted() -> None:
    meter = counter(range(6), [30, 60, 1e9, 120, 150, 180], most=1000)
    assert meter.excluded == 1 and np.isnan(used(meter, 0, 5))
    assert known(meter, 0, 5)[0] == pytest.approx(90)


def test_a_counter_that_is_read_more_often_than_it_counts_is_no_leap() -> None:
    at = np.arange(0, 10, 0.1)  # every 10 ms of one that counts each 100 ms
    meter = counter(at, np.floor(at + 1e-9) * 60.0, most=1000)
    assert meter.excluded == 0 and used(meter, 1, 8) == pytest.approx(420)


def test_a_counter_counts_on_while_it_is_not_read_but_not_for_parts_of_that() -> None:
    at = [*range(10), *range(60, 70)]
    meter = counter(at, np.array(at) * 30.0)
    assert used(meter, 5, 65) == pytest.approx(1800)
    assert np.isnan(used(meter, 5, 30)) and np.isnan(used(meter, 30, 65))
    assert known(meter, 0, 69) == (pytest.approx(2070), pytest.approx(69))


# Power


def test_n14_power_is_not_integrated_over_a_gap() -> None:
    meter = power([*range(10), *range(60, 70)], [100.0] * 20)
    assert meter.method == POWER
    assert np.isnan(used(meter, 5, 65)) and np.isnan(used(meter, 5, 9.5))
    assert known(meter, 0, 69) == (pytest.approx(180), pytest.approx(18))


def test_n14_power_is_integrated_over_real_intervals() -> None:
    meter = power([0, 1, 2, 3, 5.5, 6, 7], [100.0] * 7)
    assert used(meter, 0, 7) == pytest.approx(70)


def test_the_drivers_samples_of_a_long_run_are_thinned_and_no_gap() -> None:
    at = np.concatenate((np.arange(0, 100, 0.2), np.arange(100, 300, 10), np.arange(340, 400, 10)))
    meter = by_power(ticks(*at), np.full(len(at), 100.0), method=BUFFER)
    assert meter is not None and known(meter, 0, 390) == (pytest.approx(3400), pytest.approx(340))


@pytest.mark.parametrize("absurd", [3.7e6, 1e12, 0.0, -5.0])
def test_n13_an_absurd_reading_is_left_out_and_counted(absurd: float) -> None:
    values = [100.0] * 11
    values[5] = absurd
    meter = power(range(11), values, most=bound(700))
    assert meter.excluded == 1 and used(meter, 0, 10) == pytest.approx(100)


def test_n13_absurd_readings_for_long_are_a_gap() -> None:
    values = [100.0] * 5 + [3.7e6] * 10 + [100.0] * 5
    meter = power(range(20), values)
    assert meter.excluded == 10 and np.isnan(used(meter, 0, 19))
    assert known(meter, 0, 19)[0] == pytest.approx(80)


@pytest.mark.parametrize(("limit", "most"), [(700, 2100), (250.5, 751.5), (None, BOUND_W), ("x", BOUND_W),
                                             (0, BOUND_W), (True, BOUND_W), (1e300, BOUND_W)])
def test_n13_the_bound_follows_the_cards_limit(limit: object, most: float) -> None:
    assert bound(limit) == most


def test_the_shortest_time_of_a_claim_follows_the_readings() -> None:
    assert power(range(20), [100.0] * 20).least_ns == 1_000_000_000
    assert power(np.arange(20) * 20, [100.0] * 20).least_ns == 4_000_000_000  # one in two seconds
