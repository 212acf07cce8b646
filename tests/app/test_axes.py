"""The shared time view, its axis, and value axes that move in steps."""

from __future__ import annotations

import pytest

from app.widgets.paint import spread
from app.widgets.time_axis import moment_text, tick_step, tick_text, time_ticks
from app.widgets.time_view import LIVE_SPAN, SHORTEST, TimeView
from app.widgets.y_range import YRange, fitting, following


@pytest.fixture
def view(qapp: object) -> TimeView:
    result = TimeView()
    result.reset(60.0, following=True)
    return result


def test_following_shows_the_newest_end(view: TimeView) -> None:
    assert (view.x0, view.x1) == (30.0, 60.0)
    view.advance(61.5)
    assert view.x1 == 61.5
    assert view.span == LIVE_SPAN


def test_a_short_run_starts_at_zero(qapp: object) -> None:
    view = TimeView()
    view.reset(2.0, following=True)
    view.advance(3.0)
    assert (view.x0, view.x1) == (0.0, LIVE_SPAN)


def test_the_edge_of_the_known_moves_in_a_view_that_stands(qapp: object) -> None:
    view = TimeView()
    view.reset(2.0, following=True)
    seen: list[float] = []
    view.changed.connect(lambda: seen.append(view.end))
    view.advance(2.1)
    view.advance(2.1)
    assert seen == [2.1]
    assert (view.x0, view.x1) == (0.0, LIVE_SPAN)


def test_a_zoom_is_kept_by_following(view: TimeView) -> None:
    view.zoom(0.5, 40.0)
    assert not view.following
    assert view.span == pytest.approx(15.0)
    assert (40.0 - view.x0) / view.span == pytest.approx(10 / 30)  # what was under the pointer stays there
    before = view.x0
    view.advance(62.0)
    assert view.x0 == before  # growing never takes the view away
    view.follow()
    assert (view.x1, view.span) == (62.0, pytest.approx(15.0))


def test_a_zoom_at_the_newest_end_goes_on_following(view: TimeView) -> None:
    view.zoom(0.5, 60.0)
    assert view.following
    assert (view.x0, view.x1) == pytest.approx((45.0, 60.0))


def test_panning_ends_following(view: TimeView) -> None:
    view.pan(-10)
    assert not view.following
    assert (view.x0, view.x1) == (20.0, 50.0)


def test_nobody_gets_lost(view: TimeView) -> None:
    view.pan(-1e6)
    assert view.x1 > 0
    view.pan(1e6)
    assert view.x0 < view.end
    view.zoom(1e9, 30)
    assert view.span <= 60.0
    view.zoom(1e-9, 30)
    assert view.span == pytest.approx(SHORTEST)


def test_fit_shows_the_whole_run(view: TimeView) -> None:
    view.fit()
    assert (view.x0, view.x1) == (0.0, 60.0)
    assert not view.following


def test_the_end_of_a_short_recording_fits(qapp: object) -> None:
    view = TimeView()
    view.reset(5.0, following=True)
    view.finish(8.0)
    assert (view.x0, view.x1, view.following) == (0.0, 8.0, False)


def test_signals_come_only_on_change(view: TimeView) -> None:
    seen: list[str] = []
    view.changed.connect(lambda: seen.append("range"))
    view.crosshair_changed.connect(lambda: seen.append("crosshair"))
    view.advance(60.0)
    view.set_crosshair(None)
    assert not seen
    view.set_crosshair(3.0)
    view.set_crosshair(3.0)
    assert seen == ["crosshair"]


@pytest.mark.parametrize(("span", "width", "step"), [
    (30, 800, 5), (30, 300, 10), (3600, 800, 600), (0.5, 800, 0.1), (86400 * 3, 800, 43200), (1.0, 800, 0.2)])
def test_time_ticks_are_round(span: float, width: float, step: float) -> None:
    assert tick_step(span, width) == pytest.approx(step)


def test_ticks_lie_inside_and_not_before_the_start() -> None:
    assert time_ticks(-3, 30, 800) == pytest.approx([0, 5, 10, 15, 20, 25, 30])
    assert time_ticks(16.2, 46.2, 800) == pytest.approx([20, 25, 30, 35, 40, 45])


def test_texts_of_times() -> None:
    assert tick_text(20, 5) == "20\u00a0s"
    assert tick_text(20.5, 0.5) == "20.5\u00a0s"
    assert tick_text(150, 10) == "02:30"
    assert moment_text(38.2, 30) == "38.20\u00a0s"
    assert moment_text(38.2, 1) == "38.200\u00a0s"
    assert moment_text(150.25, 30) == "02:30.25"


@pytest.mark.parametrize(("high", "intervals", "ticks"), [
    (233, 2, [0, 150, 300]), (7.1, 2, [0, 4, 8]), (77, 4, [0, 20, 40, 60, 80]), (0.74, 2, [0, 0.4, 0.8]),
    (100, 4, [0, 25, 50, 75, 100])])
def test_ranges_from_zero(high: float, intervals: int, ticks: list[float]) -> None:
    top = 100 if high == 100 else None
    assert fitting(0, high, intervals, top=top).ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(("step", "decimals"), [
    (20, 0), (2.5, 1), (0.5, 1), (0.25, 2), (0.15, 2), (0.2, 1), (250, 0), (0.0004, 4)])
def test_tick_labels_lose_nothing(step: float, decimals: int) -> None:
    assert YRange(0, 2 * step, step).decimals() == decimals


def test_a_clock_may_start_higher() -> None:
    assert fitting(1755, 1980, 2, zero=False).ticks() == pytest.approx([1600, 1800, 2000])
    constant = fitting(1980, 1980, 2, zero=False)
    assert constant.low < 1980 <= constant.high


@pytest.mark.parametrize(("intervals", "ticks"), [
    (2, [0, 50, 100]), (3, [0, 50, 100]), (4, [0, 25, 50, 75, 100])])
def test_a_share_never_exceeds_its_top(intervals: int, ticks: list[float]) -> None:
    assert fitting(0, 97, intervals, top=100).ticks() == pytest.approx(ticks)
    assert fitting(0, 103, intervals, top=100).high == 100


@pytest.mark.parametrize("high", [0.0, float("nan"), -1.0])
def test_a_range_of_nothing_is_still_one(high: float) -> None:
    found = fitting(0, high, 3)
    assert found.high > found.low


def test_a_range_moves_in_steps_and_does_not_flicker() -> None:
    current = following(None, 0, 77, 4)
    assert current == YRange(0, 80, 20)
    assert following(current, 0, 60, 4) is current
    assert following(current, 0, 79, 4) is current
    assert following(current, 0, 95, 4).high == 100
    assert following(current, 0, 20, 4).high < 40
    shown = [current := following(current, 0, value, 4) for value in (39, 41, 39, 41, 39, 41)]
    assert len({r.high for r in shown}) <= 2


def test_labels_move_apart_and_stay_inside() -> None:
    assert spread([10, 50, 90], 14, 0, 100) == [10, 50, 90]
    found = spread([50, 51, 52], 14, 0, 100)
    assert all(b - a >= 14 for a, b in zip(found, found[1:], strict=False))
    low = spread([95, 96, 97], 14, 0, 100)
    assert low[-1] <= 100 and all(b - a >= 14 for a, b in zip(low, low[1:], strict=False))
