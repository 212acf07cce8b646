"""From series to curves: gaps, spikes, bands, and the bars of the step strip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.live.series import FIRST, Intervals, find_gaps, nice, to_band, to_curve
from app.live.steps import LiveSteps, bars
from profiler.analysis.steps import load_steps
from profiler.model import STAGES
from profiler.run.reader import Run, Series
from tests.runs import MS, START_NS, make_run

TENTH = 100 * MS


def exact(times: list[int], values: list[float]) -> Series:
    t = START_NS + np.array(times, np.int64)
    v = np.array(values, float)
    return Series(t, v, v, True, t)


def test_a_missing_sample_or_two_is_no_gap_but_a_longer_break_is() -> None:
    times = [i * TENTH for i in (0, 1, 2, 4, 5, 9, 10)]
    series = exact(times, [1.0] * 7)
    x, y = to_curve(series, START_NS, TENTH)
    assert np.isnan(y).sum() == 1
    assert x[np.isnan(y)][0] == pytest.approx(0.5)
    (gap,) = find_gaps(series, START_NS, TENTH)
    assert (gap.x0, gap.x1) == pytest.approx((0.5, 0.9))
    assert gap.text == "gap 0.4\u00a0s"


def test_without_a_usual_interval_nothing_is_called_a_gap() -> None:
    series = exact([0, 10 * TENTH], [1.0, 2.0])
    _, y = to_curve(series, START_NS, None, scale=100)
    assert y.tolist() == [100.0, 200.0]
    assert not find_gaps(series, START_NS, None)


def test_nothing_becomes_nothing() -> None:
    for values in to_band(exact([], []), START_NS, TENTH):
        assert not len(values)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9])
def test_both_ends_of_each_group_are_drawn_and_the_line_goes_on(count: int) -> None:
    t = START_NS + np.arange(count, dtype=np.int64) * TENTH
    low, high = np.arange(count, dtype=float), np.arange(count, dtype=float) + 10
    x, y = to_curve(Series(t, low, high, False, t), START_NS, TENTH)
    assert len(x) == 2 * count
    pairs = y.reshape(-1, 2)
    assert pairs.min(axis=1).tolist() == low.tolist()
    assert pairs.max(axis=1).tolist() == high.tolist()
    # No zigzag inside a point of time: up in one, down in the next.
    assert (np.diff(pairs, axis=1)[0::2] > 0).all()
    assert (np.diff(pairs, axis=1)[1::2] < 0).all()


def test_a_long_group_is_no_gap() -> None:
    t = START_NS + np.array([0, 16 * TENTH], np.int64)
    end = t + 15 * TENTH
    v = np.array([1.0, 2.0])
    _, y = to_curve(Series(t, v, v, False, end), START_NS, TENTH)
    assert not np.isnan(y).any()


def test_a_band_covers_what_the_neighbours_reach() -> None:
    series = exact([i * TENTH for i in range(20)], [2.0 if i % 2 else 5.0 for i in range(20)])
    x, lower, upper = to_band(series, START_NS, TENTH)
    assert len(x) == 20
    assert set(lower.tolist()) == {2.0}
    assert set(upper.tolist()) == {5.0}


def test_a_spike_of_one_sample_survives_any_zoom(tmp_path: Path) -> None:
    power = {"gpu.power": lambda k: 700 if k == 777 else 200}
    path = make_run(tmp_path / "r.stepscope", steps=2000, gpu=power)
    with Run.open(path) as run:
        track = run.find("gpu.power")[0].id
        usual = Intervals().usual(run, track)
        assert usual == pytest.approx(TENTH)
        series = run.series(track, points=40)
        assert not series.exact
        _, y = to_curve(series, run.start_ns, usual)
        assert np.nanmax(y) == 700
        assert len(y) < 4 * 40 + 100


def test_the_usual_interval_is_read_from_the_first_samples(tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = make_run(tmp_path / "r.stepscope", steps=400, gpu={"gpu.power": 200}), []
    with Run.open(path) as run:
        values = run.values
        monkeypatch.setattr(run, "values", lambda *asked: read.append(values(*asked)) or read[-1])
        track = run.find("gpu.power")[0].id
        assert run.count(track) > 2 * FIRST
        assert Intervals().usual(run, track) == pytest.approx(TENTH)
    assert [len(times) for times, _ in read] == [FIRST]


@pytest.mark.parametrize(("value", "wanted"), [(0.24, 0.3), (1.0, 1.0), (1.1, 1.5), (70, 80), (9, 10)])
def test_nice_numbers(value: float, wanted: float) -> None:
    assert nice(value) == pytest.approx(wanted)


@pytest.fixture
def steps(tmp_path: Path) -> LiveSteps:
    path = make_run(tmp_path / "r.stepscope", steps=400, stages={
        "data": lambda k: 30 + k % 7, "forward": lambda k: 6.0 if k != 100 else 60, "other": 0.5})
    result = LiveSteps()
    with Run.open(path) as run:
        result.update(run)
        result.update(run)
    return result


def test_steps_are_read_once(steps: LiveSteps) -> None:
    assert len(steps) == 400
    assert steps.index.tolist() == list(range(400))
    assert (steps.stages.sum(axis=0) == steps.t1_ns - steps.t0_ns).all()


def test_a_bar_is_the_median_step_of_its_bin_with_a_whisker_to_the_slowest(steps: LiveSteps) -> None:
    found = bars(steps, START_NS, 0.0, 20.0, 800.0)
    assert found.bin_seconds == pytest.approx(0.2)
    ends, wall = (steps.t1_ns - START_NS) / 1e9, (steps.t1_ns - steps.t0_ns) / 1e6
    for i, left in enumerate(found.left):
        inside = wall[(ends >= left - 1e-9) & (ends < found.right[i] - 1e-9)]
        middle = np.sort(inside)[(len(inside) - 1) // 2]
        assert found.heights[:, i].sum() == pytest.approx(middle)
        assert found.slowest[i] == pytest.approx(inside.max())


def test_bars_do_not_change_while_the_view_moves(steps: LiveSteps) -> None:
    first = bars(steps, START_NS, 2.00, 12.00, 400.0)
    later = bars(steps, START_NS, 2.07, 12.07, 400.0)
    shared = sorted(set(np.round(first.left, 6)) & set(np.round(later.left, 6)))
    assert len(shared) > 30
    for left in shared[:-1]:
        a = first.heights[:, np.round(first.left, 6) == left]
        b = later.heights[:, np.round(later.left, 6) == left]
        assert np.array_equal(a, b)


def test_from_eight_pixels_each_step_is_a_bar(steps: LiveSteps) -> None:
    found = bars(steps, START_NS, 5.0, 5.5, 800.0)
    assert found.bin_seconds == 0
    assert np.allclose(found.right[:-1], found.left[1:])
    assert found.heights.shape[0] == len(STAGES)


def test_no_steps_no_bars() -> None:
    assert bars(LiveSteps(), START_NS, 0, 30, 800).heights.size == 0


def test_which_step_runs_at_a_moment(steps: LiveSteps) -> None:
    middle = int(steps.t0_ns[7] + steps.t1_ns[7]) // 2
    assert steps.at(middle) == 7
    assert steps.at(int(steps.t1_ns[-1]) + 1) is None
    assert steps.at(int(steps.t0_ns[0]) - 1) is None


def test_only_new_steps_are_read_of_a_growing_run(tmp_path: Path) -> None:
    from tests.app.story import Story

    story = Story(tmp_path / "r.stepscope")
    story.advance(6.0)
    with Run.open(story.path) as run:
        live = LiveSteps()
        live.update(run)
        before = len(live)
        assert before == story.step
        story.advance(8.0)
        run.refresh()
        live.update(run)
        assert len(live) == story.step > before
        whole = load_steps(run)
        assert np.array_equal(live.t1_ns, whole.t1_ns)
        assert np.array_equal(live.stages[0], whole.stages["data"])
    story.finish(8.0)
