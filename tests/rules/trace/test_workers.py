"""What more loader workers would give, from a trace of a loop without any."""

import pytest

from tests.rules.trace.loops import loop, step_ms, told


def predicted(wait_us):
    found = told(loop(wait_us=wait_us))
    ideal = next(s for s in found["what_if"] if s["scenario"] == "no_input_wait")
    return found["findings"][0], ideal


def test_workers_that_hide_the_loader_gain_what_ready_batches_would():
    finding, ideal = predicted(400)
    told_of = finding["prediction"]
    assert told_of["at_most"] and told_of["speedup"] == ideal["speedup"] and told_of["high"] == ideal["high"]
    assert told_of["low"] == ideal["low"]  # one worker is enough: cores matter little
    slow, ideal = predicted(4000)
    assert slow["remedy"]["to"] > 5
    assert slow["prediction"]["speedup"] == pytest.approx(ideal["speedup"], rel=0.02)
    assert 1.0 <= slow["prediction"]["low"] < 0.5 * slow["prediction"]["speedup"]  # where they share a core
    assert any("neither cores nor storage" in e["text"] for e in slow["counter_evidence"])


def test_a_loader_that_no_number_of_workers_hides_gains_less_than_ready_batches_would():
    finding, ideal = predicted(40_000)
    assert finding["remedy"]["to"] == 16
    batch = 1.12 * 40_000 / 16
    assert finding["prediction"]["speedup"] == pytest.approx(1000 * step_ms(40_000) / batch, rel=0.02)
    assert finding["prediction"]["speedup"] < 0.5 * ideal["speedup"]
