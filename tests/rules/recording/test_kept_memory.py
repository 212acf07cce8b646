"""Memory that the C library gives back and fetches anew: the variable that lets it keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.analysis.facts import gather
from profiler.analysis.steps import training_process
from profiler.experiments.change import testable as can_be_tested
from profiler.experiments.program import Program
from profiler.rules.base import Finding
from profiler.rules.recording import allocator_bound
from profiler.rules.recording.allocator_bound import KEEP, TUNABLES
from profiler.run.reader import Run
from tests.rules.recording.test_crowded import counted
from tests.runs import make_run

LINUX = {"system": "Linux 6.1", "cores": 2, "cores_usable": 2}


def found(folder: Path, environment: dict[str, Any], machine: dict[str, Any] = LINUX) -> Finding:
    plan = counted({"loop.system": 0.48, "loop.faults": 285e3},
                   meta={"machine": machine, "environment": environment})
    with Run.open(make_run(folder / "a.stepscope", **plan)) as run:
        [finding] = allocator_bound.check(gather(run, training_process(run))).findings
    return finding


@pytest.mark.parametrize("told", [None, "glibc.malloc.arena_max=1"])
def test_the_c_library_is_told_to_keep_it(told: str | None, tmp_path: Path) -> None:
    finding = found(tmp_path, {TUNABLES: told} if told else {})
    remedy, prediction = finding.remedy, finding.prediction
    assert remedy is not None and (remedy.setting, remedy.before, remedy.after) == (TUNABLES, told, KEEP)
    assert can_be_tested(remedy, Program(tmp_path, command=("python", "train.py")))
    assert prediction is not None and prediction.at_most
    assert prediction.low == 1.0 and prediction.high == pytest.approx(1 / (1 - 0.47), rel=0.05)


@pytest.mark.parametrize(("environment", "machine"), [
    ({TUNABLES: KEEP}, LINUX), ({"LD_PRELOAD": "/usr/lib/libtcmalloc.so.4"}, LINUX),
    ({}, {**LINUX, "system": "Darwin 24.1"}), ({}, {"cores": 2, "cores_usable": 2})])
def test_where_that_does_nothing_it_is_advice(
        environment: dict[str, Any], machine: dict[str, Any], tmp_path: Path) -> None:
    finding = found(tmp_path, environment, machine)
    assert finding.remedy is None and finding.prediction is None and "out=" in finding.advice
