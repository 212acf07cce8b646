"""Where steps begin and end, and which of them train, with clocks moved by hand."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from profiler import model
from tests.probe.fakes import Script, ms
from tests.probe.reading import EPOCH_FIRST, PARTIAL

MS = 1_000_000


@pytest.fixture
def script() -> Script:
    return Script()


def flags(steps: list[dict[str, int]]) -> list[int]:
    return [s["flags"] for s in steps]


def test_flags_are_the_models() -> None:
    from _stepscope_probe import phases

    assert (phases.EVALUATION, phases.EPOCH_FIRST, phases.PROFILED, phases.PARTIAL) == (
        model.STEP_EVALUATION, model.STEP_EPOCH_FIRST, model.STEP_PROFILED, model.STEP_PARTIAL)


def test_a_step_runs_from_fetch_to_fetch(script: Script) -> None:
    loader = script.loader()
    for _ in range(3):
        script.fetch(loader)
        script.train()
        script.other(7)
    script.stop(loader)
    steps = script.steps()
    assert [(s["t1"] - s["t0"]) / MS for s in steps] == [72, 72, 72]
    assert ms(steps[1], "data", "h2d", "forward", "backward", "optimizer") == [10, 0, 20, 30, 5]
    assert flags(steps) == [EPOCH_FIRST, 0, 0]
    assert [s["samples"] for s in steps] == [4, 4, 4]


def test_a_loop_that_was_left_ends_in_a_partial_step(script: Script) -> None:
    loader = script.loader()
    for _ in range(2):
        script.fetch(loader)
        script.train()
        script.other(7)
    steps = script.steps()
    assert flags(steps) == [EPOCH_FIRST, PARTIAL]
    assert steps[1]["t1"] - steps[1]["t0"] == 65 * MS  # to the end of its last stage


def test_epochs_with_evaluation_between(script: Script) -> None:
    train, valid = script.loader(), script.loader()
    for _ in range(2):
        script.epoch(train, 3)
        for _ in range(2):
            script.fetch(valid)
            script.forward(training=False)
        script.stop(valid)
    assert flags(script.steps()) == [2, 0, 0, 3, 1] * 2


def test_a_sanity_check_before_training_is_evaluation(script: Script) -> None:
    train, valid = script.loader(), script.loader()
    script.fetch(valid)
    script.forward(training=False)
    script.epoch(train, 2)
    assert flags(script.steps()) == [3, 2, 0]


def test_a_validation_inside_the_training_loop_ends_the_training_step(script: Script) -> None:
    train, valid = script.loader(), script.loader()
    for _ in range(2):
        script.fetch(train)
        script.train()
        script.fetch(valid)
        script.forward(training=False)
        script.stop(valid)
    assert flags(script.steps()) == [2, 3, 0, 3]


def test_accumulated_gradients_are_training_from_the_first_step(script: Script) -> None:
    loader = script.loader()
    for i in range(8):
        script.fetch(loader)
        script.forward()
        if i % 4 == 3:
            script.backward()
            script.optimize()
    script.stop(loader)
    steps = script.steps()
    assert flags(steps) == [2] + [0] * 7
    assert [s["index"] for s in steps] == list(range(8))


def test_fetches_with_no_forward_between_them_count_once(script: Script) -> None:
    first, second = script.loader(), script.loader()
    for _ in range(3):
        script.fetch(first)
        script.fetch(second, size=9)
        script.train()
    script.stop(first)
    steps = script.steps()
    assert [s["data"] / MS for s in steps] == [20, 20, 20]
    assert [s["samples"] for s in steps] == [4, 4, 4]


def test_batches_fetched_one_ahead(script: Script) -> None:
    """As accelerate does: the last batch is run after the loader has ended."""
    loader = script.loader()
    for _ in range(2):
        script.fetch(loader, size=1)
        for size in (2, 3):
            script.fetch(loader, size=size)
            script.train()
        script.stop(loader)
        script.train()
        script.other(1000)
    steps = script.steps()
    assert [s["samples"] for s in steps] == [1, 2, 3] * 2
    assert flags(steps) == [2, 0, 0] * 2
    assert steps[2]["t1"] - steps[2]["t0"] == 55 * MS


def test_batches_fetched_for_a_whole_accumulation(script: Script) -> None:
    """As the trainer of transformers does."""
    loader = script.loader()
    for n in (4, 4, 2):
        for _ in range(n):
            script.fetch(loader)
        if n == 2:
            script.stop(loader)
        for _ in range(n):
            script.forward()
            script.backward()
        script.optimize()
    steps = script.steps()
    assert [s["samples"] for s in steps] == [16, 16, 8]
    assert flags(steps) == [2, 0, 0]


def test_a_pass_over_the_data_is_no_step(script: Script) -> None:
    data, train = script.loader(), script.loader()
    for _ in range(5):
        script.fetch(data)
    script.stop(data)
    script.epoch(train, 2)
    steps = script.steps()
    assert flags(steps) == [2, 0]
    assert steps[0]["data"] == 10 * MS


def test_two_models_and_two_optimizers(script: Script) -> None:
    loader = script.loader()
    for _ in range(3):
        script.fetch(loader)
        script.forward()
        script.forward()
        script.backward()
        script.optimize()
        script.train()
    script.stop(loader)
    steps = script.steps()
    assert [s["optimizer_calls"] for s in steps] == [2, 2, 2]
    assert [s["samples"] for s in steps] == [4, 4, 4]


def test_without_a_loader_a_step_begins_at_the_first_forward_after_a_backward(script: Script) -> None:
    for _ in range(3):
        script.forward()
        script.forward()
        script.backward()
        script.optimize()
        script.other(2)
    steps = script.steps()
    assert flags(steps) == [0, 0, PARTIAL]
    assert ms(steps[0], "forward", "backward", "optimizer") == [40, 30, 5]
    assert [(s["t1"] - s["t0"]) / MS for s in steps] == [77, 77, 75]
    assert [s["index"] for s in steps] == [0, 1, 2]


def test_without_backward_each_forward_is_a_step(script: Script) -> None:
    for _ in range(12):
        script.forward()
        script.other(1)
    steps = script.steps()
    assert flags(steps) == [0] * 11 + [PARTIAL]
    assert {s["forward"] for s in steps} == {20 * MS}


def test_a_trial_of_the_model_before_the_loop_is_no_step(script: Script) -> None:
    loader = script.loader()
    script.forward()
    script.forward()
    script.other(5000)
    script.epoch(loader, 3)
    steps = script.steps()
    assert flags(steps) == [2, 0, 0]
    assert [s["index"] for s in steps] == [0, 1, 2]


def test_a_model_used_between_epochs_is_no_step(script: Script) -> None:
    loader = script.loader()
    for _ in range(2):
        script.epoch(loader, 2)
        script.forward(training=False)
    assert len(script.steps()) == 4


def test_batches_that_another_thread_fetches(script: Script) -> None:
    loader = script.loader()

    def elsewhere(action: Any, *args: Any) -> None:
        thread = threading.Thread(target=action, args=args)
        thread.start()
        thread.join()

    elsewhere(script.fetch, loader, 10, 1)
    for size in (2, 3, 4):
        elsewhere(script.fetch, loader, 10, size)
        script.train()
    steps = script.steps()
    assert [s["samples"] for s in steps] == [1, 2, 3]
    assert [s["forward"] / MS for s in steps] == [20, 20, 20]
    assert loader.train


def test_a_model_that_another_thread_runs_is_not_the_loops(script: Script) -> None:
    loader = script.loader()
    release = threading.Event()
    script.fetch(loader)
    script.train()
    thread = threading.Thread(target=lambda: (script.forward(100), release.wait()))
    thread.start()
    script.fetch(loader)
    script.train()
    script.stop(loader)
    release.set()
    thread.join()
    assert len(script.steps()) == 2
    assert {s["forward"] for s in script.sent} == {20 * MS}


def test_backward_alone_still_makes_steps(script: Script) -> None:
    """A compiled function hides its forward."""
    for _ in range(3):
        script.other(20)
        script.backward()
        script.optimize()
    steps = script.steps()
    assert len(steps) == 3
    assert {s["backward"] for s in steps} == {30 * MS}
