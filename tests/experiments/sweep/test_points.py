from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.errors import UsageError
from profiler.experiments.sweep.points import (
    MOST,
    Range,
    drawn,
    grid,
    label,
    listed,
    parse_axis,
    parse_range,
)

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
VALUES = st.lists(st.from_regex(r"[A-Za-z0-9.:/-]{1,6}", fullmatch=True), min_size=1, max_size=4, unique=True)
AXES = st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)


@given(AXES)
def test_a_grid_holds_each_combination_once(axes: dict[str, list[str]]) -> None:
    points = grid(axes)
    assert len(points) == math.prod(map(len, axes.values())) == len({label(point) for point in points})
    assert all(point.keys() == axes.keys() for point in points)
    assert all(point[key] in axes[key] for point in points for key in axes)


@given(KEYS, VALUES)
def test_an_axis_is_read_as_it_is_written(key: str, values: list[str]) -> None:
    assert parse_axis(f"{key}={','.join(values)}") == (key, tuple(values))


def test_values_with_commas_and_of_json() -> None:
    assert parse_axis('shape=["1,2", "3,4"]') == ("shape", ("1,2", "3,4"))
    assert parse_axis("amp=[true, 2, 0.5]") == ("amp", ("true", "2", "0.5"))
    assert parse_axis("batch-size=8, 16,8") == ("batch_size", ("8", "16"))


@pytest.mark.parametrize("given", ["workers", "=1", "workers=", "a=1,,2", "a b=1", "a=[1", "a=[]", "1=2"])
def test_no_axis(given: str) -> None:
    with pytest.raises(UsageError):
        parse_axis(given)


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.integers(0, 2**32), st.booleans())
def test_draws_stay_in_the_range(low: int, width: int, seed: int, log: bool) -> None:
    low = abs(low) + 1 if log else low
    key, limits = parse_range(f"n={low}:{low + width}{':log' if log else ''}")
    assert key == "n" and limits == Range(low, low + width, whole=True, log=log)
    assert low <= int(limits.draw(random.Random(seed))) <= low + width


def test_a_range_of_fractions() -> None:
    _, limits = parse_range("lr=0.001:0.1:log")
    values = [float(limits.draw(random.Random(seed))) for seed in range(200)]
    assert min(values) >= 0.001 and max(values) <= 0.1
    assert 60 < sum(value < 0.01 for value in values) < 140  # half of them in each order of magnitude


@pytest.mark.parametrize("given", ["a=1", "a=2:1", "a=0:1:log", "a=x:1", "a=1:2:lin", "a=1:inf", "a=1:2:3:4"])
def test_no_range(given: str) -> None:
    with pytest.raises(UsageError):
        parse_range(given)


@given(AXES, st.integers(1, 12), st.integers(0, 100))
def test_draws_differ_and_repeat_with_the_seed(axes: dict[str, list[str]], count: int, seed: int) -> None:
    points = drawn(axes, {}, count, seed)
    assert points == drawn(axes, {}, count, seed)
    assert 1 <= len(points) == len({label(point) for point in points}) <= count
    assert all(point[key] in axes[key] for point in points for key in axes)


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="nothing to draw"):
        drawn({}, {}, 3, 0)
    with pytest.raises(UsageError, match="both"):
        drawn({"a": ["1"]}, {"a": Range(0, 1, False, False)}, 3, 0)


def test_a_list_of_points() -> None:
    lines = ['{"workers": 2, "pin": true}', "", '{"pin": false, "workers": 4}', '{"workers": 2, "pin": true}']
    assert listed(lines) == [{"workers": "2", "pin": "true"}, {"workers": "4", "pin": "false"}]


@pytest.mark.parametrize("lines", [[], ["", " "], ["[1]"], ["{}"], ["{"], ['{"a": 1}', '{"b": 1}'],
                                   ['{"a": 1, "a": 2}'], ["[" * 100_000]])
def test_no_list_of_points(lines: list[str]) -> None:
    with pytest.raises(UsageError):
        listed(lines)


def test_too_many_points() -> None:
    with pytest.raises(UsageError, match=f"At most {MOST}"):
        grid({"a": [str(k) for k in range(40)], "b": [str(k) for k in range(40)]})
    with pytest.raises(UsageError, match="more than"):  # a number that Python would not write out
        grid({f"a{k}": ["0", "1"] for k in range(20_000)})
