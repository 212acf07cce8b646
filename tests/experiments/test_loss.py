from __future__ import annotations

import pytest

from profiler.experiments.loss import compare, printed


def test_finds_losses_by_what_stands_before_them() -> None:
    found = printed(b"epoch 1\r\nstep 1/9 loss 2.5\rstep 2/9 Loss: 2.25e0\n"
                    b"{'loss': 0.5, 'lr': 1}\nlossless 3\nloss nan\n")
    assert found["step 1/9"] == 2.5
    assert found["step 2/9"] == 2.25
    assert found["{'"] == 0.5
    assert found[""] != found[""]


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert printed(b"\xff\xfe step 1 loss 2.0 \x1b[0m") != {}


@pytest.mark.parametrize(("a", "b", "state"), [
    ([2.0, 2.0], [2.0, 2.01], "agrees"), ([2.0, 2.0], [2.5, 2.5], "differs"),
    ([2.0, 3.0], [2.5, 2.5], "not repeatable"), ([float("nan")], [float("nan")], "agrees"),
    ([float("nan")], [1.0], "differs")])
def test_states(a: list[float], b: list[float], state: str) -> None:
    parity = compare([{"step 9": x} for x in a], [{"step 9": x} for x in b])
    assert parity.state == state
    assert parity.at == "step 9"


def test_only_the_same_step_is_compared() -> None:
    a, b = {"step 1": 2.0, "step 8": 1.0}, {"step 1": 2.0, "step 9": 0.9}
    assert compare([a], [b]).at == "step 1"
    assert compare([{"step 8": 1.0}], [{"step 9": 1.0}]).state == "not compared"
    assert compare([], []).state == compare([{}], [{}]).state == "not compared"
