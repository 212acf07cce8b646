"""The replay against traces whose truth is known, and against real ones. Must hold 2 and 4 of the step."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.joined import Joined
from profiler.replay import Replay, predict
from tests.reference import needs_reference, reference_files, traces, truth

REAL = 1.05  # true speedup from which a prediction counts

pytestmark = needs_reference


@cache
def replays(name: str) -> tuple[Replay, ...]:
    result = []
    for trace in traces(name):
        j = Joined(trace)
        found = steps.find(j)
        result.append(predict(j, found, steady.steady(j, found)))
    return tuple(result)


def readings(row: dict) -> list[float]:
    return [row["speedup"], *(other["speedup"] for other in row["also"])]


def scored() -> list[tuple[float, str]]:
    """|predicted / true - 1| of every scored scenario with a real gain; 1 where it is withheld."""
    errors = []
    for name, row in truth().items():
        [replay] = replays(name)
        for scenario in row["what_if"] if row["what_if_scored"] else ():
            if scenario["speedup"] < REAL:
                continue
            own = replay.speedups().get(scenario["scenario"])
            error = 1.0 if own is None else min(abs(own / true - 1) for true in readings(scenario))
            errors.append((error, f"{name} {scenario['scenario']}"))
    return errors


def test_speedups_are_the_true_ones() -> None:
    errors = sorted(scored())
    values = [error for error, _ in errors]
    assert np.median(values) <= 0.01, errors[-5:]
    assert np.percentile(values, 95) <= 0.05, errors[-5:]


@pytest.mark.parametrize("name", sorted(truth()))
def test_no_gain_is_invented(name: str) -> None:
    [replay] = replays(name)
    for scenario in truth()[name]["what_if"]:
        if scenario["speedup"] < 1.02:
            assert replay.speedups()[scenario["scenario"]] < max(readings(scenario)) + 0.02, scenario


def test_the_unchanged_replay_meets_labelled_traces() -> None:
    for name in truth():
        [replay] = replays(name)
        assert replay.error <= 0.005, name
        assert replay.unbounded_error <= 0.0005, name
        assert not replay.withheld


def test_the_unchanged_replay_meets_real_traces() -> None:
    errors = {f"{path.name} {k}": replay for path in reference_files()
              for k, replay in enumerate(replays(path.name)) if replay.error is not None}
    assert len(errors) >= 20
    assert np.median([replay.error for replay in errors.values()]) <= 0.01
    assert max(replay.unbounded_error for replay in errors.values()) <= 0.005


def test_predictions_are_withheld_where_edges_are_missing() -> None:
    """Stream waits whose records the trace lacks."""
    [replay] = replays("diff_control_a100.json.gz")
    assert replay.error > 0.05
    assert replay.withheld and not replay.scenarios


def test_two_real_jobs_differ_by_their_workers() -> None:
    """Measured: four workers made the job 1.40 times as fast."""
    [without] = replays("v100_resnet50_workers0.json.gz")
    [with_four] = replays("v100_resnet50_workers4.json.gz")
    assert 1.3 < without.speedups()["no_input_wait"] < 1.6
    assert with_four.speedups()["no_input_wait"] == pytest.approx(1, abs=0.01)
    assert without.step_ns / with_four.step_ns == pytest.approx(1.40, abs=0.01)


@pytest.mark.parametrize(("name", "scenario", "low", "high"), [
    ("h100_owlv2.json.gz", "no_input_wait", 1.8, 2.2),          # loader 51 % of the one step
    ("h100_timesformer.json.gz", "no_host_work", 2.0, 2.6),     # 218 of 383 ms before the first kernel
    ("v100_float_epoch_us.json.gz", "compute_half", 1.9, 2.0),  # 98 % busy; launches block on the queue
    ("h100_bert_small.json.gz", "no_launch_overhead", 3, 9),    # device 8 % busy
])
def test_real_traces_show_what_they_are_known_for(name: str, scenario: str, low: float, high: float) -> None:
    [replay] = replays(name)
    assert low < replay.speedups()[scenario] < high
