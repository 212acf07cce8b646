from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.experiments.ceilings.leaning import Leaning, Level, lean


def level(ms: float, spread: float = 0.0) -> Level:
    return Level(ms, ms * (1 - spread), ms * (1 + spread))


def read(workers: int | None, spread: float = 0.0, batch: float | None = 16, **ms: float) -> Leaning:
    return lean({name: level(value, spread) for name, value in ms.items()}, workers, batch)


def test_with_workers_the_slower_one_is_leant_on() -> None:
    found = read(2, real=41, loader=40, cached=15, forward=6)
    assert (found.on, found.how, found.also) == ("loader", "reaches", ())
    assert "gives 400\u00a0samples/s, the run 390\u00a0samples/s: it leans on the loader" in found.text
    assert "1\u00a0067\u00a0samples/s, 2.73\u00a0\u00d7 at most" in found.text
    found = read(2, real=41, loader=15, cached=40, forward=10)
    assert (found.on, found.how) == ("cached", "reaches")
    assert "Backward and optimizer take 30.0\u00a0ms of it" in found.text


def test_two_ceilings_of_the_same_height_are_both_named() -> None:
    found = read(2, real=41, loader=40, cached=39)
    assert (found.on, found.also) == ("loader", ("cached",))
    assert "as near as can be told, on all but the input" in found.text


def test_slower_than_either_leans_on_neither_by_itself() -> None:
    found = read(2, real=60, loader=40, cached=30)
    assert (found.on, found.how) == ("loader", "above")
    assert "reaches neither" in found.text


def test_without_workers_times_add() -> None:
    found = read(0, real=52, loader=36, cached=16)
    assert (found.on, found.how) == ("loader", "adds")
    assert "are 52.0\u00a0ms of the 52.0\u00a0ms" in found.text and "69\u00a0%, is the loader" in found.text
    found = read(0, real=40, loader=36, cached=16)
    assert found.how == "between" and "overlap in part" in found.text
    assert "are more than the 40.0\u00a0ms that the run takes" in found.text
    # a loader that costs next to nothing adds nothing to tell
    found = read(0, real=50, loader=1, cached=50)
    assert (found.on, found.how) == ("cached", "reaches")


def test_copies_are_what_keeping_on_the_device_saves() -> None:
    found = read(2, real=41, loader=10, cached=40, device=25, forward=10)
    assert "Copies of the batch take 15.0\u00a0ms of it" in found.text
    assert "Backward and optimizer take 15.0\u00a0ms" in found.text
    assert "cost nothing that can be seen" in read(2, real=41, loader=10, cached=40, device=39.5).text


def test_a_run_faster_than_its_ceiling_is_doubted() -> None:
    assert "no typical one" in read(2, real=30, loader=10, cached=40).text


def test_noise_widens_what_counts_as_reached() -> None:
    assert read(2, real=45, loader=40, cached=15).how == "above"
    assert read(2, 0.15, real=45, loader=40, cached=15).how == "reaches"
    assert read(2, 0.9, real=60, loader=40, cached=15).how == "above"  # the noise that is allowed has an end


@pytest.mark.parametrize(("ms", "on", "how"), [
    ({}, None, "unknown"), ({"loader": 3.0}, None, "unknown"), ({"real": 4.0}, None, "unknown"),
    ({"real": 4.0, "loader": 3.95}, "loader", "reaches"), ({"real": 4.0, "loader": 2.0}, None, "unknown"),
    ({"real": 4.0, "cached": 3.95, "forward": 1.0}, "cached", "reaches"),
    ({"real": 4.0, "forward": 1.0}, None, "unknown")])
def test_what_was_not_measured_is_not_claimed(ms: dict[str, float], on: str | None, how: str) -> None:
    found = read(0, **ms)
    assert (found.on, found.how) == (on, how)
    assert found.text.endswith(".")


def test_times_where_the_work_of_a_step_is_not_known() -> None:
    found = read(2, batch=None, real=41, loader=40, cached=9)
    assert "takes 40.0\u00a0ms, the run 41.0\u00a0ms" in found.text


MS = st.floats(0.01, 1e5)


@given(MS, MS, MS, st.sampled_from([None, 0, 1, 4]), st.floats(0, 0.5))
def test_what_is_reached_is_the_slowest(real: float, loader: float, cached: float, workers: int | None,
                                        spread: float) -> None:
    found = read(workers, spread, real=real, loader=loader, cached=cached)
    assert found.on == ("loader" if loader >= cached else "cached")
    if found.how == "reaches":
        assert real <= max(loader, cached) * 1.2501
    if found.how in ("adds", "between"):
        assert not workers
