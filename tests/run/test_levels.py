"""Levels hide nothing: the smallest and largest value of any range are those of the samples."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.run.decode import Part
from profiler.run.reader import Run
from profiler.run.samples import ALWAYS, load
from tests.run.planned import SECOND, START, write

TENTH = SECOND // 10

recordings = st.fixed_dictionaries({
    "count": st.integers(0, 9000),
    "every": st.integers(1, 700),
    "seconds": st.sampled_from([0.1, 5.0, 31.0, 400.0]),
    "state": st.sampled_from(["finished", None]),
    "seed": st.integers(0, 2**32 - 1),
    "disorder": st.booleans(),
    "spike": st.integers(0, 2**32 - 1),
})


def _samples(plan: dict) -> list[tuple[int, float]]:
    rng = np.random.default_rng(plan["seed"])
    times = START + np.arange(plan["count"]) * TENTH + rng.integers(0, TENTH // 1000, plan["count"]) * 1000
    if plan["disorder"] and plan["count"] > 4:
        for at in rng.integers(0, plan["count"] - 3, 5):
            times[at : at + 3] = times[at : at + 3][::-1].copy()
    values = rng.integers(0, 100, plan["count"]) / 100
    if plan["count"]:
        values[plan["spike"] % plan["count"]] = 1e6
    return list(zip(times.tolist(), values.tolist(), strict=True))


def _level(run: Run, track: int, level: int, t0: int, t1: int) -> Part:
    with run._reading() as db:
        run._kept.follow(db)
        return load(db, run._kept, track, level, t0, t1)


def _check(part: Part, times: np.ndarray, values: np.ndarray) -> None:
    """Every entry is the envelope of samples, and every sample lies within an entry."""
    assert np.all(part.t0[1:] >= part.t0[:-1])
    for t0, t1, low, high in zip(part.t0, part.t1, part.low, part.high, strict=True):
        inside = values[(times >= t0) & (times <= t1)]
        assert inside.min() <= low <= high <= inside.max()
    covered = np.zeros(len(times), bool)
    for t0, t1, low, high in zip(part.t0, part.t1, part.low, part.high, strict=True):
        covered |= (times >= t0) & (times <= t1) & (values >= low) & (values <= high)
    assert covered.all()


@settings(max_examples=25, deadline=None)
@given(recordings, st.floats(0, 1), st.floats(0, 1), st.integers(1, 400))
def test_any_range_at_any_level(plan: dict, left: float, right: float, points: int) -> None:
    samples = _samples(plan)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.stepscope"
        track = write(path, samples, every=plan["every"], seconds=plan["seconds"], state=plan["state"])
        with Run.open(path) as run:
            times, values = run.values(track)
            samples.sort(key=lambda sample: sample[0])
            assert list(zip(times.tolist(), values.tolist(), strict=True)) == samples
            if not samples:
                assert run.latest(track) is None
                return
            for level in range(5):
                part = _level(run, track, level, *ALWAYS)
                assert (part.low.min(), part.high.max()) == (values.min(), values.max())
                if plan["count"] < 3000:
                    _check(part, times, values)
            low, high = sorted((left, right))
            t0, t1 = (START + int(x * plan["count"] * TENTH) for x in (low, high))
            _check_series(run, track, t0, t1, points)


def _check_series(run: Run, track: int, t0: int, t1: int, points: int) -> None:
    times, values = run.values(track, t0, t1)
    everything = run.values(track)[1]
    series = run.series(track, t0, t1, points)
    assert len(series.t_ns) <= 2 * points + 1
    assert np.all(np.diff(series.t_ns) >= 0)
    assert np.all(series.low <= series.high)
    if len(values):
        assert series.low.min() <= values.min()
        assert values.max() <= series.high.max() <= everything.max()
    if series.exact:
        assert series.t_ns.tolist() == times.tolist()
        assert series.low.tolist() == values.tolist() == series.high.tolist()


@pytest.mark.parametrize("state", ["finished", None])
def test_one_sample_that_stands_out_is_seen_in_a_long_run(tmp_path: Path, state: str | None) -> None:
    samples = [(START + i * TENTH, 0.25) for i in range(100_000)]
    for place in (0, 33_333, 99_999):
        samples[place] = (samples[place][0], 1.0)
    path = tmp_path / "a.stepscope"
    track = write(path, samples, every=1000, seconds=100.0, state=state)
    with Run.open(path) as run:
        series = run.series(track, points=50)
        assert len(series.t_ns) <= 101
        assert (series.high == 1.0).sum() == 3
        assert series.low.max() == 0.25
        assert not series.exact
        seen = series.t_ns[series.high == 1.0]
        assert np.abs(seen - START - np.array([0, 33_333, 99_999]) * TENTH).max() < 100_000 * TENTH / 25


def test_a_gap_stays_a_gap(tmp_path: Path) -> None:
    samples = [(START + (i + (50_000 if i >= 5000 else 0)) * TENTH, 1.0) for i in range(10_000)]
    path = tmp_path / "a.stepscope"
    track = write(path, samples, every=1000, seconds=100.0)
    with Run.open(path) as run:
        series = run.series(track, points=200)
        gap = int(np.argmax(np.diff(series.t_ns)))
        assert series.t_ns[gap + 1] - series.end_ns[gap] > 49_000 * TENTH


def test_slices_keep_their_place_while_the_range_moves(tmp_path: Path) -> None:
    samples = [(START + i * TENTH, float(i % 7)) for i in range(5000)]
    path = tmp_path / "a.stepscope"
    track = write(path, samples, every=1000, seconds=100.0)
    with Run.open(path) as run:
        one = run.series(track, START, START + 300 * SECOND, 100)
        two = run.series(track, START + 20 * SECOND, START + 320 * SECOND, 100)
    assert len(set(one.t_ns.tolist()) & set(two.t_ns.tolist())) > 80


def test_what_a_reader_gives_may_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    track = write(path, [(START + i * SECOND, float(i)) for i in range(10)])
    with Run.open(path) as run:
        for _ in range(2):
            times, values = run.values(track)
            assert values.tolist() == [float(i) for i in range(10)]
            times[:], values[:] = 0, -1
            series = run.series(track, points=100)
            series.low[:] = -1
            assert series.high.tolist() == [float(i) for i in range(10)]
