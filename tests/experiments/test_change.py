from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.catalog import get
from profiler.errors import UsageError
from profiler.experiments import change
from profiler.experiments.change import changed, current, first_testable, parse_tried, way
from profiler.experiments.program import Program, recorded_program
from profiler.rules.base import Finding, Prediction, Remedy

SCRIPT = Program(Path(), command=("python", "train.py", "--lr={lr}"), environment={"OMP_NUM_THREADS": "2"})
WORKLOAD = Program(Path(), workload="language_model", settings=get("language_model").defaults())
NOTHING = Program(Path())


@pytest.mark.parametrize(("setting", "script", "workload"), [
    ("num_workers", "probe", "probe"), ("pin_memory", "probe", "workload"),
    ("threads", "probe", "workload"), ("matmul_precision", "probe", "probe"),
    ("cudnn_benchmark", "probe", "workload"), ("cuda_graphs", "", "workload"),
    ("lr", "placeholder", ""), ("OMP_NUM_THREADS", "environment", "environment"),
    ("PYTORCH_CUDA_ALLOC_CONF", "environment", "environment"), ("bucket_cap_mb", "", ""),
    ("non_blocking", "", "workload"), ("", "", "")])
def test_ways(setting: str, script: str, workload: str) -> None:
    assert way(setting, SCRIPT) == script
    assert way(setting, WORKLOAD) == workload
    assert way(setting, NOTHING) == ""


def test_what_the_workload_cannot_run_with_is_not_testable() -> None:
    on_cpu = Program(Path(), workload="language_model", settings={**WORKLOAD.settings, "device": "cpu"})
    graphs = Remedy("cuda_graphs", False, True)
    assert change.testable(graphs, WORKLOAD)
    assert not change.testable(graphs, on_cpu)
    assert not change.testable(Remedy("prefetch_factor", 2, 4), WORKLOAD)  # it has no workers
    assert not change.testable(None, WORKLOAD)


def test_runs_of_workloads_that_are_gone_are_not_testable() -> None:
    gone = Program(Path(), workload="no_such", settings={"threads": 1})
    older = Program(Path(), workload="language_model", settings={**WORKLOAD.settings, "was_renamed": 1})
    assert not change.testable(Remedy("threads", 1, 2), gone)
    assert not change.testable(Remedy("threads", 1, 2), older)


@pytest.mark.parametrize("meta", [{"kind": "import"}, {"kind": "monitor", "command": ["x"]}, {}])
def test_what_was_not_started_is_not_testable(meta: dict[str, Any]) -> None:
    assert not change.testable(Remedy("num_workers", 0, 4), recorded_program(meta))


def test_first_is_one_with_a_prediction() -> None:
    guess = Finding("a", "", "error", remedy=Remedy("threads", 8, 2))
    known = Finding("b", "", "info", remedy=Remedy("num_workers", 0, 2),
                    prediction=Prediction("no_input_wait", 2.0, 1.8, 2.2))
    none = Finding("c", "", "error")
    assert first_testable([none, guess, known], SCRIPT) is known
    assert first_testable([none, guess], SCRIPT) is guess
    assert first_testable([none], SCRIPT) is None


def test_changes() -> None:
    assert changed(SCRIPT, "lr", 0.1)[0].command == ("python", "train.py", "--lr=0.1")
    assert changed(SCRIPT, "OMP_NUM_THREADS", 4)[0].environment == {"OMP_NUM_THREADS": "4"}
    assert changed(SCRIPT, "num_workers", 4) == (SCRIPT, {"num_workers": 4})
    program, intervene = changed(WORKLOAD, "threads", 2)
    assert program.settings["threads"] == 2 and intervene is None
    assert WORKLOAD.settings["threads"] == 0


def test_values_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    assert current("OMP_NUM_THREADS", SCRIPT, {}) == "2"
    assert current("MKL_NUM_THREADS", SCRIPT, {}) == "3"
    assert current("num_workers", SCRIPT, {"num_workers": 5}) == 5
    assert current("matmul_precision", SCRIPT, {}) is None
    assert current("threads", WORKLOAD, {}) == 0


@pytest.mark.parametrize(("given", "program", "before", "after"), [
    ("num_workers=4", SCRIPT, None, 4), ("num-workers=0,4", SCRIPT, 0, 4),
    ("lr=0.1, 0.2", SCRIPT, "0.1", "0.2"),
    ("cudnn_benchmark=on", SCRIPT, None, True), ("matmul_precision=high", SCRIPT, None, "high"),
    ("PYTORCH_CUDA_ALLOC_CONF=a:1,b:2", SCRIPT, None, "a:1,b:2"),
    ("precision=bfloat16", WORKLOAD, None, "bfloat16"),
    ("persistent_workers=false", SCRIPT, None, False)])
def test_what_is_tried(given: str, program: Program, before: Any, after: Any) -> None:
    tried = parse_tried(given, program)
    assert (tried.before, tried.after) == (before, after)


@pytest.mark.parametrize(("given", "program", "words"), [
    ("num_workers", SCRIPT, "names no value"), ("=4", SCRIPT, "names no value"),
    ("num_workers=", SCRIPT, "names no value"), ("num_workers=1,2,3", SCRIPT, "sweep"),
    ("num_workers=many", SCRIPT, "whole number"), ("num_workers=-1", SCRIPT, "range"),
    ("lr=0.1", SCRIPT, "BEFORE,AFTER"), ("momentum=0.9", SCRIPT, "nothing that can be changed"),
    ("threads=many", WORKLOAD, "whole number"), ("lr=1,2", WORKLOAD, "nothing that can be changed"),
    ("prefetch_factor=4", WORKLOAD, "needs 1 worker"), ("matmul_precision=lowest", SCRIPT, "highest")])
def test_what_cannot_be_tried(given: str, program: Program, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_tried(given, program)
