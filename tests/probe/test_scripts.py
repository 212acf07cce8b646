"""Kinds of user scripts: same output and status as without the probe, and as many steps as they made."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.probe.reading import (
    EPOCH_FIRST,
    EVALUATION,
    PARTIAL,
    SCRIPTS,
    Ran,
    run,
    together,
    with_and_without,
)


def test_two_models_that_are_saved_copied_pickled_and_scripted(tmp_path: Path) -> None:
    ran = run(tmp_path, "gan.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.said["wrapped"]  # the class is, its instances are not
    steps, timed = ran.only.training, ran.said["steps"]
    assert len(steps) == len(timed) == 10
    assert {s["optimizer_calls"] for s in steps} == {2}
    for stage in ("forward", "backward"):
        # step by step: a machine that others load takes both clocks along
        apart = median(abs(s[stage] - t[stage]) for s, t in zip(steps, timed, strict=True))
        assert apart <= 0.05 * median(t[stage] for t in timed)


@pytest.mark.parametrize(("name", "stage"),
                         [("optimizer_stage.py", "optimizer"), ("kept_call.py", "forward")])
def test_a_stage_is_as_long_as_the_call(name: str, stage: str, tmp_path: Path) -> None:
    ran = run(tmp_path, name)
    assert ran.returncode == 0, ran.stderr
    steps = ran.only.training
    assert len(steps) == ran.said["steps"]
    assert {s["optimizer_calls"] for s in steps} == {1}
    assert median(s[stage] for s in steps) == pytest.approx(ran.said[stage], rel=0.05, abs=200_000)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Scripts of which no time is looked at."""
    path = tmp_path_factory.mktemp("counted")
    module = path / "module"
    (module / "rel").mkdir(parents=True)
    (module / "rel" / "path.txt").write_text("1 2 3 4 5 6")
    (module / "pkg").symlink_to(SCRIPTS / "pkg")
    return together(lambda: run(path / "scaled", "scaled.py"),
                    lambda: run(path / "unlooped", "unlooped.py",
                                env={"STEPSCOPE_TRACE": '{"start_step": 30, "steps": 8}'}),
                    lambda: run(module, "-m", "pkg.train", "--data", "rel/path.txt"))


def test_a_scaler_that_skips_and_accumulated_gradients(counted: list[Ran]) -> None:
    ran = counted[0]
    assert ran.returncode == 0, ran.stderr
    steps = ran.only.training
    assert len(steps) == ran.said["steps"] == 32
    assert ran.said["skipped"] == 1
    assert sum(s["optimizer_calls"] for s in steps) == ran.said["calls"] == 7
    assert [i for i, s in enumerate(steps) if s["flags"] & EPOCH_FIRST] == [0, 16]
    assert not ran.only.evaluation


def test_without_a_loader_and_too_short_for_its_window(counted: list[Ran]) -> None:
    ran = counted[1]
    assert ran.returncode == 0, ran.stderr
    assert len(ran.only.training) == 10
    assert [s["flags"] for s in ran.only.evaluation] == [EVALUATION] * 4 + [EVALUATION | PARTIAL]
    assert {s["samples"] for s in ran.only.steps} == {0}
    (event,) = ran.only.events("trace_incomplete")
    assert "run ended after 10 steps, 38 needed" in event["text"]


def test_module_with_spawned_workers_relative_data_and_a_status(counted: list[Ran]) -> None:
    ran = counted[2]
    assert (ran.returncode, ran.stderr) == (3, "")
    assert ran.stdout.endswith("step 6\nanswer 45 argv ['--data', 'rel/path.txt']\n")
    # neither the workers nor the process beside the loop write
    assert len(ran.only.training) == 6
    assert [s["samples"] for s in ran.only.training] == [2] * 6
    assert ran.only.loaders[-1] | {"site": ""} == {
        "num_workers": 1, "batch_size": 2, "prefetch_factor": 2, "pin_memory": False,
        "persistent_workers": True, "dataset": "Lines", "train": True, "site": ""}


def test_terminal_input_carriage_returns_and_an_exception(tmp_path: Path) -> None:
    ran, bare = with_and_without(tmp_path, "talking.py", stdin="Ada\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert ran.returncode == 1
    assert "\r9 [" in ran.stderr
    assert ran.stderr.endswith("RuntimeError: out of coffee\n")
    assert len(ran.only.training) == 10
    assert ran.only.training[-1]["flags"] & PARTIAL


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a frame cannot be taken out before Python 3.11")
def test_a_traceback_is_the_same(tmp_path: Path) -> None:
    ran, bare = with_and_without(tmp_path, "failing.py",
                                 env={"STEPSCOPE_INTERVENE": '{"num_workers": 0, "pin_memory": false}'})
    assert (ran.returncode, ran.stderr) == (bare.returncode, bare.stderr) == (0, "")
    assert ran.stdout.count("failing.py") >= 14
    assert ran.stdout == bare.stdout
    assert len(ran.only.training) == 10


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_without_a_graph_break(tmp_path: Path, backend: str) -> None:
    ran, bare = with_and_without(tmp_path, "compiled.py", backend)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == bare.stdout
    assert ran.said["breaks"] == 0
    assert len(ran.only.training) == 9 * 8
    # of the later models the first steps are not seen yet, and a compiled function hides its own
    assert sum(s["forward"] > 0 for s in ran.only.training) >= 6 * 6


@pytest.mark.slow
def test_a_compiled_step_breaks_no_more_often_than_without_us(tmp_path: Path) -> None:
    ran, bare = with_and_without(tmp_path, "compiled_step.py")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == json.loads(bare.stdout)
    assert len(ran.only.training) == 10
