from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.errors import UsageError
from profiler.experiments.sweep.points import grid
from profiler.experiments.sweep.subject import choose, of_command, of_workload

HERE = Path()
PLAIN = (sys.executable, "train.py")


@given(st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True).filter(lambda key: key != "threads"),
                       st.text("ab0-./{}= ", min_size=1, max_size=6), min_size=1, max_size=3))
def test_values_are_put_where_their_placeholders_are(values: dict[str, str]) -> None:
    command = [sys.executable, *(f"--{key}={{{key}}}" for key in values), "{{kept}}", '{"json": 1}']
    subject = of_command(command, list(values), HERE)
    filled = [f"--{key}={value}" for key, value in values.items()]
    expected = [sys.executable, *filled, "{kept}", '{"json": 1}']
    assert list(subject.at(values).command) == expected
    assert shlex.split(subject.command(values)) == expected
    assert subject.intervene(values) == {}


@pytest.mark.parametrize(("command", "keys", "says"), [
    ((*PLAIN, "{lr}"), [], "lr} has no values"),
    ((*PLAIN, "{lr}"), ["lr", "momentum"], "momentum occurs nowhere"),
    ((*PLAIN, "{{lr}}"), ["lr"], "lr occurs nowhere"),
    (("no-such-command-here",), ["num_workers"], "command not found"),
])
def test_keys_and_placeholders_have_to_meet(command: list[str], keys: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        of_command(command, keys, HERE)


def test_a_plain_scripts_loader_is_set_by_the_probe() -> None:
    subject = of_command(PLAIN, ["num_workers", "prefetch_factor"], HERE)
    points, skipped = choose(subject, grid({"num_workers": ["0", "2"], "prefetch_factor": ["2", "4"]}))
    assert points == [{"num_workers": 0, "prefetch_factor": 2}, {"num_workers": 2, "prefetch_factor": 2},
                      {"num_workers": 2, "prefetch_factor": 4}]
    assert [point for point, _ in skipped] == [{"num_workers": 0, "prefetch_factor": 4}]
    assert subject.intervene(points[0]) == {"num_workers": 0}
    assert subject.intervene(points[1]) == {"num_workers": 2, "prefetch_factor": 2}
    assert subject.at(points[1]).command == PLAIN
    assert "--intervene" in subject.command(points[1]) and subject.command(points[1]).endswith(" train.py")
    assert subject.in_code(points[1]) == "DataLoader(..., num_workers=2, prefetch_factor=2)"


@pytest.mark.parametrize(("key", "value"), [("num_workers", "x"), ("num_workers", "-1"), ("pin_memory", "2"),
                                            ("num_workers", "9" * 400), ("NAME\n", "1"),
                                            ("prefetch_factor", "0"), ("matmul_precision", "low")])
def test_values_that_a_key_cannot_have(key: str, value: str) -> None:
    with pytest.raises(UsageError, match=key):
        choose(of_command(PLAIN, [key], HERE), [{key: value}])


def test_a_placeholder_goes_before_what_the_probe_could_set() -> None:
    """The command asks for it by that name, and would be started with {threads} in it."""
    subject = of_command(["python", "train.py", "--threads={threads}"], ["threads"], HERE)
    assert subject.at(subject.typed({"threads": "2"})).command[-1] == "--threads=2"
    assert subject.intervene({"threads": "2"}) == {}


def test_variables_of_the_environment() -> None:
    subject = of_command(PLAIN, ["OMP_NUM_THREADS"], HERE)
    assert subject.at({"OMP_NUM_THREADS": "2"}).environment == {"OMP_NUM_THREADS": "2"}
    assert subject.command({"OMP_NUM_THREADS": "2"}).startswith("OMP_NUM_THREADS=2 ")


def test_combinations_that_a_workload_excludes_are_skipped_with_the_reason() -> None:
    subject = of_workload("input_starved", ["steps=20"], ["workers", "prefetch_factor"], None, HERE)
    points, skipped = choose(subject, grid({"workers": ["0", "2"], "prefetch_factor": ["2", "4"]}))
    assert len(points) == 3 and len(skipped) == 1
    assert skipped[0][0] == {"workers": 0, "prefetch_factor": 4} and "1 worker" in skipped[0][1]
    settings = subject.at(points[2]).settings
    assert settings["workers"] == 2 and settings["prefetch_factor"] == 4 and settings["steps"] == 20
    assert subject.command(points[2]) == ("stepscope record --workload input_starved --set steps=20 "
                                          "--set workers=2 --set prefetch_factor=4")
    with pytest.raises(UsageError, match="no combination can be run"):
        choose(subject, [{"workers": "0", "prefetch_factor": "4"}])


def test_sizes_of_a_workload_and_what_is_given_beside_them() -> None:
    subject = of_workload("input_starved", ["batch_size=4"], ["size"], None, HERE)
    points, _ = choose(subject, grid({"size": ["smallest", "stress"]}))
    assert [subject.at(point).settings["steps"] for point in points] == [60, 1000]
    assert [subject.at(point).settings["batch_size"] for point in points] == [4, 4]
    with pytest.raises(UsageError, match="no size huge"):
        choose(subject, [{"size": "huge"}])


@pytest.mark.parametrize(("keys", "says"), [(["worker"], "workers"), (["steps"], "--steps")])
def test_keys_that_a_workload_lacks(keys: list[str], says: str) -> None:
    with pytest.raises(UsageError) as error:
        of_workload("input_starved", [], keys, None, HERE)
    assert says in str(error.value)
