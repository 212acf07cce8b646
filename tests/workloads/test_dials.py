"""Faults cost what they state, in the stage that they state, against the control beside them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiler.model import STAGES
from tests.bench.dials import Dial, Loop, measure, on_cpu, row, wanted_verdict
from workloads import _faults


def loop(verdict: str = "compute_bound", rules: tuple[str, ...] = (), **stages: float) -> Loop:
    """A loop of ten steps whose stages took so many seconds."""
    every = {stage: stages.get(stage, 0.0) for stage in STAGES}
    return Loop(sum(every.values()), every, 10, verdict, (), rules)


def dial(*pairs: tuple[Loop, Loop], **changed: Any) -> Dial:
    stated = {"NAME": "slow", "FACTOR": (1.5, 3.0), "STAGE": "data", "RULE": "input_bound",
              "VERDICT": "input_bound"}
    fault: Any = SimpleNamespace(**{**stated, **changed})
    return Dial(fault, pairs)


def test_the_median_pair_counts() -> None:
    control = loop(forward=1.0)
    slow = [loop("input_bound", ("input_bound",), data=wait, forward=1.0) for wait in (1.0, 1.2, 9.0)]
    found = dial(*((control, one) for one in slow))
    assert found.ratio == pytest.approx(2.2) and found.ratios == pytest.approx([2.0, 2.2, 10.0])
    assert found.growth["data"] == pytest.approx(120) and found.growth["forward"] == 0
    assert found.holds and found.named
    assert row(found).startswith("ok   slow")


def test_what_is_not_as_stated_is_told() -> None:
    pair = loop(forward=1.0), loop("input_bound", ("stalls",), data=1.0, forward=1.0)
    elsewhere = dial(pair, STAGE="forward")
    assert not elsewhere.holds and "data +100.0 ms, states forward" in row(elsewhere)
    assert not dial(pair, FACTOR=(2.5, 3.0)).holds
    assert not dial(pair).named and "wanted input_bound by input_bound" in row(dial(pair))
    assert dial(pair, RULE="stalls").named
    assert wanted_verdict(dial(pair, ON_CPU="host_bound").fault) == "host_bound"


def test_faults_state_ranges_that_say_something() -> None:
    for fault in on_cpu():
        low, high = fault.FACTOR
        assert 1.05 < low < high, fault.NAME
        assert fault.STAGE in STAGES
    told = {fault.NAME for fault in on_cpu()}
    assert {name for name in _faults.names() if _faults.fault(name).NEEDS != "cuda"} == told


@pytest.mark.slow
@pytest.mark.parametrize("name", [fault.NAME for fault in on_cpu()])
def test_a_dial_acts(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    found = measure(_faults.fault(name), tmp_path, pairs=3)
    assert found.holds, row(found)
