"""Which stage each nanosecond goes to, with clocks moved by hand."""

from __future__ import annotations

import pytest

from tests.probe.fakes import Script, ms

MS = 1_000_000


@pytest.fixture
def script() -> Script:
    return Script()


def test_an_optimizer_inside_backward_is_the_optimizers_time(script: Script) -> None:
    loader = script.loader()
    for _ in range(2):
        script.fetch(loader)
        script.forward()
        depth = script.loop.backward_enter()
        script.other(10)
        for _ in range(3):
            script.optimize(2)
        script.other(10)
        script.loop.pop(depth)
    script.stop(loader)
    for s in script.steps():
        assert ms(s, "forward", "backward", "optimizer") == [20, 20, 6]
        assert s["optimizer_calls"] == 3
        assert s["t1"] - s["t0"] == 56 * MS


def test_a_closure_of_the_optimizer_is_the_loops_own_code(script: Script) -> None:
    loader = script.loader()
    for _ in range(2):
        script.fetch(loader)
        depth = script.loop.optimizer_enter()
        script.forward()
        script.other(3)
        script.backward()
        script.other(5)
        script.loop.optimizer_exit(depth)
    script.stop(loader)
    for s in script.steps():
        assert ms(s, "forward", "backward", "optimizer") == [20, 30, 5]
        assert s["optimizer_calls"] == 1


def test_one_optimizer_inside_another_counts_once(script: Script) -> None:
    loader = script.loader()
    script.fetch(loader)
    script.forward()
    script.backward()
    outer = script.loop.optimizer_enter()
    script.optimize(2)
    script.loop.optimizer_exit(outer)
    script.stop(loader)
    (step,) = script.steps()
    assert (step["optimizer_calls"], step["optimizer"]) == (1, 2 * MS)


def test_a_model_inside_the_loader_is_data(script: Script) -> None:
    loader = script.loader()
    for _ in range(2):
        depth = script.loop.fetch_enter(loader, False)
        script.forward(50)
        script.loop.fetch_exit(depth, loader, 4, False)
        script.train()
    script.stop(loader)
    for s in script.steps():
        assert ms(s, "data", "forward") == [50, 20]


def test_a_copy_inside_forward_is_h2d(script: Script) -> None:
    from _stepscope_probe.stages import H2D

    loader = script.loader()
    script.fetch(loader)
    depth = script.loop.forward_enter()
    script.other(4)
    copy = script.loop.push(H2D, script.time())
    script.other(6)
    script.loop.pop(copy)
    script.loop.pop(depth)
    script.stop(loader)
    assert ms(script.steps()[0], "h2d", "forward") == [6, 4]


def test_h2d_from_arrival_to_forward(script: Script) -> None:
    loader = script.loader()
    script.loop.arrival = True
    script.fetch(loader)
    script.other(6)
    script.forward()
    script.other(9)
    script.backward()
    script.stop(loader)
    step = script.steps()[0]
    assert ms(step, "data", "h2d", "forward", "backward") == [10, 6, 20, 30]
    assert step["t1"] - step["t0"] == 75 * MS


def test_an_exception_that_leaves_a_stage_open_spoils_one_step_only(script: Script) -> None:
    loader = script.loader()
    script.fetch(loader)
    script.forward()
    script.backward()
    script.loop.optimizer_enter()  # no post hook: the optimizer raised
    for _ in range(2):
        script.fetch(loader)
        script.train()
    script.stop(loader)
    assert ms(script.steps()[1], "data", "forward", "backward", "optimizer") == [10, 20, 30, 5]
