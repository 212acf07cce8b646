"""The replay's loop on programs small enough to follow by hand. Times in ns."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.replay.run import Ends, Op, Program, run

START, END = (Op.START, {}), (Op.END, {})


def replay(*ops: tuple[Op, dict[str, int]], lanes: int = 2, depth: int = 1000) -> Ends:
    columns: dict[str, Any] = {name: [values.get(name, -1 if name == "other" else 0) for _, values in ops]
                               for name in ("before", "cost", "delay", "gap", "length", "lane", "other")}
    kinds = [int(op) for op, _ in ops]
    return run(Program(kinds, **columns, devices=[list(range(lanes))], main=0, depth=depth))


def launch(**values: int) -> tuple[Op, dict[str, int]]:
    return Op.LAUNCH, {"cost": 4, "delay": 6, "gap": 1, "length": 100, **values}


def test_an_activity_starts_after_its_call_and_after_its_stream() -> None:
    ends = replay(START, launch(before=10), launch(), END)
    assert ends.last == [10 + 6 + 100 + 1 + 100]
    assert ends.end == [10 + 4 + 4]


def test_the_launch_calls_latency_counts_from_its_start() -> None:
    assert replay(START, launch(cost=50), END).last == [6 + 100]


def test_streams_run_side_by_side_unless_one_waits() -> None:
    apart = replay(START, launch(), launch(lane=1), END)
    assert apart.last == [4 + 6 + 100]
    waits = replay(START, launch(), (Op.WAIT, {"lane": 1, "other": 0}), launch(lane=1), END)
    assert waits.last == [106 + 1 + 100]


def test_a_wait_is_for_the_activity_and_not_for_what_comes_later() -> None:
    short, long, after = launch(), launch(length=10_000), launch(lane=1)
    wait, sync = (Op.WAIT, {"lane": 1, "other": 0}), (Op.STREAM, {"lane": 1})
    ends = replay(START, short, long, wait, after, sync, END)
    assert ends.end == [106 + 1 + 100]
    stream = (Op.WAIT, {"lane": 1, "other": -2})
    assert replay(START, short, long, stream, after, END).last == [107 + 10_000 + 1 + 100]


@pytest.mark.parametrize("op", [Op.STREAM, Op.EVENT, Op.DEVICE])
def test_a_synchronisation_ends_with_what_it_waits_for_or_with_its_own_cost(op: Op) -> None:
    wait = (op, {"cost": 3, "delay": 2, "other": 0})
    assert replay(START, launch(), wait, END).end == [106 + 2]
    assert replay(START, launch(), (Op.HOST, {"cost": 500}), wait, END).end == [4 + 500 + 3]


def test_an_event_of_a_step_that_is_not_replayed_was_before_this_step() -> None:
    event = (Op.EVENT, {"other": -2})
    assert replay(START, launch(), END, START, launch(length=10_000), event, END).end == [4, 106]


def test_a_stream_synchronisation_leaves_other_streams_alone() -> None:
    ends = replay(START, launch(), launch(lane=1, length=900), (Op.STREAM, {"cost": 1, "lane": 0}), END)
    assert ends.end == [106]


def test_freeing_memory_drains_the_device_first() -> None:
    assert replay(START, launch(), (Op.DRAIN, {"cost": 30}), END).end == [106 + 30]


def test_a_full_queue_holds_the_host_back() -> None:
    four = [launch() for _ in range(4)]
    assert replay(START, *four, END).end == [16]
    assert replay(START, *four, END, depth=2).end == [107 + 4]  # room for the fourth when the second begins


def test_batches_arrive_one_after_the_other() -> None:
    fetch = (Op.FETCH, {"cost": 5, "delay": 70})
    assert replay(START, fetch, END, START, fetch, END).end == [70, 140]
    slow = (Op.HOST, {"cost": 500})
    assert replay(START, fetch, slow, END, START, fetch, END).end == [570, 575]
    anew = (Op.FETCH, {"cost": 5, "delay": 70, "other": 0})
    assert replay(START, fetch, slow, END, START, anew, END).end == [570, 640]


def test_an_activity_that_is_left_out_keeps_the_numbers_of_the_others() -> None:
    ends = replay(START, (Op.SKIP, {}), launch(), (Op.EVENT, {"other": 1, "cost": 1}), END)
    assert ends.end == [106]


def test_later_activities_of_a_launch_have_only_their_gap() -> None:
    assert replay(START, launch(), (Op.FOLLOW, {"gap": 2, "length": 10}), END).last == [106 + 12]
