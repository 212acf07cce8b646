"""Numbers as the mockups write them."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler import units
from profiler.metrics import METRICS

S = units.NBSP
FINITE = st.floats(min_value=-1e15, max_value=1e15, allow_nan=False)


@pytest.mark.parametrize(("ns", "text"), [
    (0, "0 ns"), (0.5, "0.50 ns"), (7, "7.0 ns"), (99.96, "100 ns"), (999.4, "999 ns"), (999.6, "1.0 us"),
    (8_100, "8.1 us"), (999_960, "1.0 ms"), (36_240_000, "36.2 ms"), (9_600_000, "9.6 ms"),
    (700_000_000, "700 ms"), (2_800_000_000, "2.8 s"), (59_960_000_000, "1 min 0 s"),
    (108_000_000_000, "1 min 48 s"), (7_500_000_000_000, "2 h 05 min"), (-2_000_000, "−2.0 ms"),
])
def test_time(ns, text):
    assert units.format_time(ns) == text.replace(" ", S)


def test_forms_of_the_mockups():
    plain = lambda text: text.replace(S, " ")  # noqa: E731
    assert plain(units.format_ms(36_240_000)) == "36.2 ms"
    assert plain(units.format_ms(400_000)) == "0.4 ms"
    assert units.format_ms(1_300_400_000, unit=False) == f"1{S}300.4"
    assert plain(units.format_rate(1224.4)) == "1 224 samples/s"
    assert plain(units.format_rate(99.96, "tokens/s")) == "100 tokens/s"
    assert plain(units.format_rate(83.12)) == "83.1 samples/s"
    assert plain(units.format_rate(0.0123)) == "0.012 samples/s"
    assert plain(units.format_share(0.692)) == "69 %"
    assert plain(units.format_share(0.591, 1)) == "59.1 %"
    assert plain(units.format_ratio(1.838, (1.791, 1.9))) == "1.84 × [1.79, 1.90]"
    assert plain(units.format_prediction(1.72, 2.04)) == "1.7 to 2.0 ×"
    assert plain(units.format_prediction(1.05, 1.08)) == "1.05 to 1.08 ×"
    assert plain(units.format_bytes(38_400_000)) == "38.4 MB"
    assert plain(units.format_bytes(512)) == "512 B"
    assert plain(units.format_bandwidth(9.4e9)) == "9.4 GB/s"
    assert plain(units.format_gib(140.4 * 2**30)) == "140.4 GiB"
    assert plain(units.format_power(228.4)) == "228 W"
    assert plain(units.format_clock(1980)) == "1 980 MHz"
    assert plain(units.format_energy(0.2134)) == "0.213 J/sample"
    assert units.clock(46.9e9) == "00:46"
    assert units.clock(3723e9) == "1:02:03"


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, -math.inf])
def test_a_missing_value_is_empty(missing):
    for function in (units.format_time, units.format_ms, units.format_bytes, units.format_gib,
                     units.format_rate, units.format_share, units.format_ratio, units.format_count,
                     units.format_power, units.format_clock, units.format_energy, units.clock):
        assert function(missing) == ""
    assert units.format_prediction(missing, 2.0) == ""


@given(FINITE)
def test_no_value_breaks_a_line_or_shows_a_hyphen(value):
    for metric in METRICS.values():
        text = units.format_value(value, metric.unit)
        assert text and " " not in text
        assert metric.unit == "mask" or "-" not in text


@given(st.floats(min_value=1, max_value=59e9))
def test_time_keeps_its_value_within_its_digits(ns):
    number, unit = units.format_time(ns).split(S)
    shown = float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert math.isclose(shown, ns, rel_tol=0.055)
    assert 1.0 <= float(number) < 1000


@given(FINITE)
def test_grouping_is_of_three(value):
    text = units.format_count(value).lstrip(units.MINUS)
    assert re.fullmatch(rf"\d{{1,3}}({S}\d{{3}})*", text)
    assert int(text.replace(S, "")) == round(abs(value))


@given(st.lists(st.integers(0, 10**9), min_size=6, max_size=6))
def test_stage_times_add_up_by_eye(stages):
    shown = [float(units.format_ms(ns, unit=False).replace(S, "")) for ns in stages]
    total = float(units.format_ms(sum(stages), unit=False).replace(S, ""))
    assert abs(sum(shown) - total) <= 0.05 * 7


def test_energy_has_three_digits_and_an_electricity_meters_unit():
    assert units.format_energy(13.61, "step") == "13.6~J/step".replace("~", S)
    assert units.format_energy(0.0001234, "token") == "0.000123~J/token".replace("~", S)
    assert units.format_energy(0.0) == "0.000~J/sample".replace("~", S)
    assert units.format_joules(12_300) == "12.3~kJ (3.4~Wh)".replace("~", S)
    assert units.format_joules(3.6e6 * 24) == "86.4~MJ (24.0~kWh)".replace("~", S)
    assert units.format_joules(None) == units.format_joules(math.nan) == ""
