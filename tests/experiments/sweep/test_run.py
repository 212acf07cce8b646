from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.errors import RunError, UsageError
from profiler.experiments.sweep.journal import NAME, Journal, begin, identity, load
from profiler.experiments.sweep.measure import CRASHED, MEMORY, STUCK
from profiler.experiments.sweep.run import FIRST_LIMIT_S, LEAST_LIMIT_S, LIMIT, Listener, run_points
from profiler.model import STAGES
from tests.experiments.sweep.stand_in import GOOD, Taker, bench

POINTS = [{"a": k} for k in range(4)]
PROGRAM = {"command": ["x"], "number of steps": 60}


def test_rounds_hold_every_point_once_in_an_order_that_changes(tmp_path: Path) -> None:
    taker = Taker(lambda point, number: 100.0)
    assert run_points(bench(tmp_path, taker), POINTS) == {}
    rounds = [taker.order[k:k + 4] for k in (0, 4, 8)]
    assert all(sorted(point["a"] for point in one) == [0, 1, 2, 3] for one in rounds)
    assert len({json.dumps(one) for one in rounds}) > 1
    again = Taker(lambda point, number: 100.0)
    run_points(bench(tmp_path, again), POINTS)
    assert again.order == taker.order
    assert list(tmp_path.iterdir()) == []  # recordings go once they are read


def test_a_failure_loses_no_other_point(tmp_path: Path) -> None:
    def answer(point: Any, number: int) -> Any:
        return {1: replace(GOOD, failure=MEMORY, why="no room"), 2: replace(GOOD, failure=CRASHED, why="oh"),
                3: replace(GOOD, failure=STUCK, why="late")}.get(point["a"], 100.0)

    taker = Taker(answer)
    out = run_points(bench(tmp_path, taker), POINTS)
    counts = Counter(point["a"] for point in taker.order)
    assert counts == {0: 3, 1: 1, 2: 2, 3: 1}  # a crash gets a second try
    assert out.keys() == {identity(point) for point in POINTS[1:]}


def test_hopeless_and_too_large_points_are_given_up_and_said(tmp_path: Path) -> None:
    dropped: list[tuple[Any, str]] = []
    taker = Taker(lambda point, number: {0: 100.0, 1: 45.0, 2: 95.0}.get(
        point["a"], replace(GOOD, rate=500.0, memory=9e9)))
    run_points(bench(tmp_path, taker, most_memory=2e9,
                     listener=Listener(dropped=lambda point, why: dropped.append((point["a"], why)))), POINTS)
    counts = Counter(point["a"] for point in taker.order)
    assert counts == {0: 3, 1: 1, 2: 3, 3: 1}
    assert {a for a, _ in dropped} == {1, 3}


def test_a_point_that_is_compared_with_is_not_given_up_for_being_behind(tmp_path: Path) -> None:
    taker = Taker(lambda point, number: 50.0 if point["a"] == 0 else 100.0)
    assert run_points(bench(tmp_path, taker), POINTS[:2], "change 1", against=POINTS[0]) == {}
    assert [point["a"] for point in taker.order] == [0, 1, 1, 0, 0, 1]
    worse = Taker(lambda point, number: 100.0 if point["a"] == 0 else 45.0)
    assert len(run_points(bench(tmp_path, worse), POINTS[:2], "change 1", against=POINTS[0])) == 1
    assert len(worse.order) == 2


@given(stop=st.integers(0, 12), torn=st.integers(1, 60))
def test_what_was_stopped_goes_on_to_the_same_end(tmp_path_factory: pytest.TempPathFactory, stop: int,
                                                  torn: int) -> None:
    """At whatever run it is stopped, and wherever the last line is torn."""
    folder = tmp_path_factory.mktemp("sweep")
    journal = begin(folder, PROGRAM, resume=False)
    count = 0

    def answer(point: Any, number: int) -> Any:
        nonlocal count
        if count == stop:
            return KeyboardInterrupt()
        count += 1
        return 100.0 + point["a"]

    if stop < 12:
        with pytest.raises(KeyboardInterrupt):
            run_points(bench(folder, Taker(answer), journal=journal), POINTS)
    else:
        run_points(bench(folder, Taker(answer), journal=journal), POINTS)
    path = folder / NAME
    whole = path.read_bytes()
    lost = min(torn, len(whole.splitlines(keepends=True)[-1]) - 2) if stop else 0
    path.write_bytes(whole[:len(whole) - lost] if lost else whole)
    resumed = begin(folder, PROGRAM, resume=True)
    assert len(resumed.every()) == stop - (1 if lost > 1 else 0)
    rest = Taker(lambda point, number: 100.0 + point["a"])
    run_points(bench(folder, rest, journal=resumed), POINTS)
    final = load(path)
    assert len(final.every()) == 12 == len(resumed.every())
    assert all(len(final.of("", point)) == 3 for point in POINTS)
    assert all(run.rate == 100.0 + point["a"] for point in POINTS for run in final.of("", point))


def test_a_journal_is_gone_on_with_only_for_the_same_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sweep to go on with"):
        begin(tmp_path, PROGRAM, resume=True)
    begin(tmp_path, PROGRAM, resume=False)
    with pytest.raises(UsageError, match="--resume"):
        begin(tmp_path, PROGRAM, resume=False)
    with pytest.raises(UsageError, match="another number of steps: 60"):
        begin(tmp_path, {**PROGRAM, "number of steps": 30}, resume=True)
    (tmp_path / NAME).write_text("{}\n")
    with pytest.raises(UsageError, match="no journal"):
        begin(tmp_path, PROGRAM, resume=True)
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be made"):
        begin(tmp_path / "file" / "x", PROGRAM, resume=False)


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    journal = begin(tmp_path, PROGRAM, resume=False)
    journal.add("", {"a": 1}, GOOD)
    with (tmp_path / NAME).open("a") as file:
        file.write('{"group": "", "point": {"a": 1}}\n[1]\n\x00\n{"group": "", "po')
    journal.add("", {"a": 1}, GOOD)
    found = load(tmp_path / NAME)
    assert found.of("", {"a": 1}) == [GOOD, GOOD] and found.damaged == 4


@pytest.mark.parametrize("wrong", [
    {"step_ms": "x"}, {"rate": []}, {"rate": True}, {"step_ms": math.nan}, {"memory": -1.0}, {"wall_s": None},
    {"wall_s": math.inf}, {"marks": [1]}, {"marks": None}, {"stages_ms": {}}, {"stages_ms": 3}, {"why": 3},
    {"stages_ms": dict.fromkeys(STAGES, "x")}, {"epochs": {}}, {"failure": None}])
def test_lines_of_other_kinds_are_damaged(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(json.dumps({"group": "", "point": {"a": 1}, **GOOD.to_json(), **wrong}) + "\n")
    found = load(path)
    assert not found.every() and found.damaged == 1


def test_a_run_is_stuck_after_ten_usual_times(tmp_path: Path) -> None:
    journal = Journal()
    assert bench(tmp_path, Taker(lambda p, n: 1.0), journal=journal).limit() == FIRST_LIMIT_S
    journal.add("", {"a": 1}, replace(GOOD, wall_s=2.0))
    assert bench(tmp_path, Taker(lambda p, n: 1.0), journal=journal).limit() == LEAST_LIMIT_S
    journal.add("", {"a": 1}, replace(GOOD, wall_s=100.0))
    assert bench(tmp_path, Taker(lambda p, n: 1.0), journal=journal).limit() == LIMIT * 100.0
    assert bench(tmp_path, Taker(lambda p, n: 1.0), journal=journal, limit_s=5.0).limit() == 5.0


def test_progress_rises_and_time_left_falls(tmp_path: Path) -> None:
    seen: list[tuple[float, int, float | None]] = []
    told: list[float | None] = []
    listener = Listener(tick=lambda done, most, left, text: seen.append((done, most, left)),
                        finished=lambda point, number, run, left: told.append(left))
    run_points(bench(tmp_path, Taker(lambda p, n: 100.0), listener=listener), POINTS)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert all(done <= most == 12 for done, most, _ in seen)
    assert seen[0][2] is None and seen[-1][2] == pytest.approx(1.0)
    assert told == [22.0, *[None] * 11]
