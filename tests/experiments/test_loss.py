from __future__ import annotations

import time

import pytest

from profiler.experiments.loss import compare, printed


def test_finds_losses_by_what_stands_before_them() -> None:
    what, found = printed(b"epoch 1\r\nstep 1/9 loss 2.5\rstep 2/9 Loss: 2.25e0\n"
                          b"{'loss': 0.5, 'lr': 1}\nlossless 3\nepoch 3 loss nan\n")
    assert what == "loss"
    assert found["step 1/9"] == 2.5
    assert found["step 2/9"] == 2.25
    assert found["{' loss, line 1"] == 0.5
    assert found["epoch 3"] != found["epoch 3"]
    assert len(found) == 4


def test_times_and_rates_do_not_keep_lines_apart() -> None:
    one = (b"12:03:01 step 5 loss 2.1\n 30%|### | 30/100 [00:03<00:07, 9.91it/s, loss=2.3]\n"
           b"3.5 s: iter 7, loss 1.0")
    other = one.replace(b"12:03:01", b"13:55:42").replace(b"00:03<00:07, 9.91", b"00:02<00:05, 14.2").replace(
        b"3.5 s", b"2.25 s")
    assert printed(one)[1].keys() == printed(other)[1].keys()
    assert "step 5" in printed(one)[1]


def test_lines_without_a_number_before_the_loss_are_counted() -> None:
    _, found = printed(b"loss: 2.303  [   64/60000]\nloss: 2.294  [ 6464/60000]\n")
    assert found == {"loss, line 1": 2.303, "loss, line 2": 2.294}


def test_confidence_where_nothing_is_trained() -> None:
    assert printed(b"step 30/30 confidence 0.0125\n") == ("confidence", {"step 30/30": 0.0125})
    assert printed(b"step 1/2 confidence 0.5\nstep 2/2 loss 0.25\n") == ("loss", {"step 2/2": 0.25})
    assert printed(b"step 3/9 latency_ms 3.2\n") == ("loss", {})
    assert compare([{"step 1": 0.5}], [{"step 1": 0.5}], "confidence").what == "confidence"


@pytest.mark.parametrize("line", [
    b"1" * 50_000 + b" loss 1", b"loss" + b" " * 50_000 + b"x", b"loss " + b"1" * 50_000,
    b"1 " * 25_000 + b"loss 1", b"1:" * 25_000 + b"loss 1", b"loss'" * 10_000])
def test_long_lines_take_no_time(line: bytes) -> None:
    begin = time.process_time()
    printed(line)
    assert time.process_time() - begin < 1  # minutes to hours where an expression goes back over digits


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert printed(b"\xff\xfe step 1 loss 2.0 \x1b[0m")[1] != {}


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
