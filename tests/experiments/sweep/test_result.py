from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from profiler.cli._common import plain
from profiler.experiments.sweep.journal import identity
from profiler.experiments.sweep.measure import CRASHED, Measured
from profiler.experiments.sweep.result import Sweep
from tests.experiments.sweep.stand_in import GOOD, SUBJECT

A, B, C = ({"a": k, "b": "x"} for k in range(3))


def runs(*rates: float, **more: Any) -> list[Measured]:
    return [replace(GOOD, rate=rate, step_ms=1e3 / rate, **more) for rate in rates]


def sweep(*own: list[Measured], **more: Any) -> Sweep:
    points = [A, B, C][:len(own)]
    return Sweep(SUBJECT, {identity(p): r for p, r in zip(points, own)}, tuple(points), steps=60, repeats=3,
                 **more)


def test_the_best_and_what_is_as_good() -> None:
    found = sweep(runs(100, 101, 99), runs(100.5, 99.5, 101.5), runs(50, 51, 50))
    assert found.best and found.best.point == B
    assert [s.point for s in found.as_good()] == [A]
    told = plain(found.to_json())
    assert [p["state"] for p in told["points"]] == ["measured", "best", "measured"]
    assert [p["outcome"] for p in told["points"]] == ["no difference shown", "", "regression"]
    assert told["points"][2]["against_best"]["median"] == pytest.approx(0.5, rel=0.02)
    assert told["best"]["command"] == "python train.py 1 x"
    assert told["unit"] == "samples/s" and json.dumps(told)


def test_overlapping_bands_show_no_difference_though_every_pair_agrees() -> None:
    found = sweep(runs(100, 110, 120), runs(103, 113.5, 123.7))
    assert found.best and found.best.point == B
    ratio, told = found.against_best(found.standings[0])
    assert ratio and ratio.high < 0.98 and told == "no difference shown"


def test_pairs_are_of_the_same_round() -> None:
    """Drift that hits both alike does not hide a difference."""
    found = sweep(runs(100, 90, 80), runs(130, 117, 104))
    ratio, _ = found.against_best(found.standings[0])
    assert ratio and ratio.low == pytest.approx(ratio.high) == pytest.approx(1 / 1.3)
    marked = [replace(runs(100)[0], marks=("stalled",)), *runs(90, 80)]
    ratio, told = (late := sweep(marked, runs(130, 117, 104))).against_best(late.standings[0])
    assert ratio and ratio.pairs == 2 and told == "unfinished"


def test_points_over_the_memory_limit_are_never_best() -> None:
    found = sweep(runs(100, 100, 100), runs(900, memory=9e9), most_memory=2e9)
    assert found.best and found.best.point == A
    assert [s.state for s in found.standings] == ["measured", "over the memory limit"]
    assert sweep(runs(900, memory=9e9), most_memory=2e9).best is None


def test_pareto_weighs_memory_and_energy() -> None:
    found = sweep(runs(100, memory=1e9, energy=2.0), runs(200, memory=3e9, energy=1.0),
                  runs(150, memory=4e9, energy=3.0))
    assert found.to_json()["pareto"] == ["a=0 b=x", "a=1 b=x"]
    assert sweep(runs(100, memory=1e9), runs(90, memory=1e9)).to_json()["pareto"] == ["a=0 b=x"]


def test_failures_are_told_for_their_point() -> None:
    broken = [replace(GOOD, rate=None, step_ms=None, failure=CRASHED, why="it broke")] * 2
    found = sweep(broken, runs(100, 100, 100), given_up={identity(A): "crashed: it broke"})
    told = plain(found.to_json())
    assert told["points"][0]["state"] == "failed" and told["points"][0]["rate"] is None
    assert [left["why"] for left in told["points"][0]["left_out"]] == ["crashed: it broke"] * 2
    assert told["best"]["label"] == "a=1 b=x"
    nothing = plain(sweep(broken, []).to_json())
    assert nothing["best"] is None and nothing["points"][1]["state"] == "not measured"


def test_steps_per_second_where_samples_are_unknown_are_said_to_be() -> None:
    told = sweep(runs(100, 100), [replace(run, rate=None) for run in runs(100, 100)]).to_json()
    assert told["unit"] == "steps/s" and any("same batch" in note for note in told["notes"])


def test_few_runs_are_said_to_be_few() -> None:
    assert any("75 of 100" in note for note in sweep(runs(100, 101, 99)).to_json()["notes"])
    assert any("run once" in note for note in sweep(runs(100)).to_json()["notes"])
