from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from profiler.experiments.statistics import FASTER, IMPROVEMENT, outcome, ratio_of
from profiler.experiments.sweep.measure import CRASHED, MEMORY, REFUSED, STUCK, Measured
from profiler.experiments.sweep.search import (
    CLEARLY,
    CRASHES,
    FAR,
    due,
    failed,
    front,
    given_up,
    hopeless,
    over,
    pace,
    score_of,
    settled,
    speed,
)

RATES = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.floats(1, 1000), min_size=1, max_size=4))


def run(rate: float | None = 100.0, **changes: object) -> Measured:
    return replace(Measured(step_ms=10.0, rate=rate, memory=1e9, wall_s=2.0), **changes)  # type: ignore[arg-type]


@given(RATES)
def test_only_those_clearly_below_the_leader_are_hopeless(scores: dict[str, list[float]]) -> None:
    out = hopeless(scores)
    noise = max((max(values) / min(values) for values in scores.values()), default=1.0)
    if scores:
        leader = max(scores, key=lambda name: min(scores[name]))
        assert leader not in out
        for name, values in scores.items():
            margin = FAR if len(values) < 2 else max(CLEARLY, noise)
            assert (name in out) == (max(values) * margin < min(scores[leader]))


def test_what_is_hopeless_depends_on_the_noise() -> None:
    assert hopeless({"a": [100.0], "b": [60.0]}) == set()  # after one run only what is far below
    assert hopeless({"a": [100.0], "b": [45.0]}) == {"b"}
    assert hopeless({"a": [100.0, 99.0], "b": [70.0, 72.0]}) == {"b"}
    assert hopeless({"a": [100.0, 99.0], "b": [60.0, 41.0]}) == {"b"}
    assert hopeless({"a": [100.0, 99.0], "b": [72.0, 51.0]}) == set()  # on a machine that wanders so much
    assert hopeless({"a": [100.0], "b": []}) == set() == hopeless({})


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6))
def test_what_is_settled_as_no_faster_stays_no_improvement(ratios: list[float]) -> None:
    if any(ratio <= FASTER for ratio in ratios):
        assert settled(ratios) and outcome(ratio_of(ratios)) != IMPROVEMENT
    elif settled(ratios):
        assert outcome(ratio_of(ratios)) == IMPROVEMENT


def test_failures_end_a_point_for_good_where_a_second_try_would_end_the_same() -> None:
    for word in (MEMORY, STUCK, REFUSED):
        assert word in failed([run(failure=word, why="so")])
    crash = run(failure=CRASHED, why="it broke")
    assert failed([crash]) == "" and "it broke" in failed([crash] * CRASHES)
    assert failed([run(), crash]) == ""


def test_points_over_the_memory_limit_are_given_up_and_never_lead() -> None:
    assert over([run(memory=2e9)], 1e9) and not over([run(memory=None)], 1e9) and not over([run()], None)
    out = given_up({"big": [run(900.0, memory=5e9)], "small": [run(100.0)]}, 2e9, 3)
    assert out.keys() == {"big"} and "memory" in out["big"]


def test_hopeless_points_wait_for_the_whole_round() -> None:
    assert given_up({"a": [run(100.0)], "b": [run(10.0)], "c": []}, None, 3) == {}
    assert given_up({"a": [run(100.0)], "b": [run(10.0)], "c": [run(99.0)]}, None, 3).keys() == {"b"}
    assert given_up({"a": [run(10.0)], "b": [run(100.0)]}, None, 3, held="a") == {}
    assert given_up({"a": [run(10.0)], "b": [run(100.0)]}, None, 1) == {}  # all its runs are made


COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=3)


@given(COUNTS, st.integers(1, 4), st.text())
def test_a_round_holds_the_points_with_fewest_runs(counts: dict[str, int], repeats: int, seed: str) -> None:
    runs = {name: [run()] * count for name, count in counts.items()}
    batch = due(runs, repeats, {}, seed)
    fewest = min(counts.values())
    expected = {name for name, count in counts.items() if count == fewest} if fewest < repeats else set()
    assert set(batch) == expected and len(batch) == len(expected)
    assert batch == due(runs, repeats, {}, seed)


def test_the_order_differs_from_round_to_round_and_two_points_alternate() -> None:
    names = "abcdefgh"
    orders = {tuple(due({n: [run()] * k for n in names}, 9, {}, "0")) for k in range(4)}
    assert len(orders) == 4
    pairs = [due({"a": [run()] * k, "b": [run()] * k}, 4, {}, "0") for k in range(4)]
    assert pairs == [["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]]


def test_marked_runs_are_made_up_for_once() -> None:
    marked = run(marks=("stalled",))
    runs = {"a": [run(), run()], "b": [run(), marked], "c": [run(), run()]}
    assert due(runs, 2, {}, "") == ["b"]
    assert due({**runs, "b": [run(), marked, marked]}, 2, {}, "") == []


def test_steps_per_second_where_samples_are_not_known() -> None:
    assert score_of([run(), run(failure=CRASHED, rate=None)]) is speed
    assert score_of([run(), run(None)]) is pace
    assert pace(run(None)) == 100.0


@given(st.dictionaries(st.integers(), st.tuples(*[st.none() | st.integers(0, 5)] * 3), max_size=12))
def test_the_front_is_what_nothing_beats(costs: dict[int, tuple[int | None, ...]]) -> None:
    found = front(costs)
    used = [k for k in range(3) if all(values[k] is not None for values in costs.values())]
    told = {name: [values[k] for k in used] for name, values in costs.items()}

    def beats(a: list[int | None], b: list[int | None]) -> bool:
        return a != b and all(x >= y for x, y in zip(a, b))  # type: ignore[operator]

    for name, mine in told.items():
        assert (name in found) == (not any(beats(other, mine) for other in told.values()))
    assert found or not costs
