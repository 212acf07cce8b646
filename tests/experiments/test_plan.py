from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import UsageError
from profiler.experiments.change import parse_tried
from profiler.experiments.plan import Plan, make_plan
from profiler.experiments.program import of_run
from profiler.rules.verdict import diagnose
from profiler.run.alive import process_start
from profiler.run.reader import Run
from tests.runs import CPU_STAGES_MS, make_run

SLOW = {"data": 40.0, "forward": 2.0, "backward": 3.0, "optimizer": 1.0}


def planned(tmp_path: Path, wanted: str | None = None, meta: dict[str, Any] | None = None,
            steps: int | None = None, tried: str | None = None, **options: Any) -> Plan:
    (tmp_path / "train.py").touch()
    here = {"command": [sys.executable, "train.py"], "cwd": str(tmp_path)}
    path = make_run(tmp_path / "run.stepscope", meta=here | (meta or {}),
                    **({"stages": SLOW, "data_cpu": 4.0, "host": {"target.cpu": 0.3}} | options))
    with Run.open(path) as run:
        named = parse_tried(tried, of_run(run)) if tried else None
        return make_plan(run, diagnose(run), wanted, steps=steps, tried=named)


def argv(plan: Plan, arm: str) -> list[str]:
    program, intervene = plan.start(arm)
    return program.argv(Path("x"), limit_s=60.0, steps=plan.steps, intervene=intervene)


def test_first_finding_with_a_loader_setting(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert plan.finding.rule == "input_bound"
    assert plan.remedy.setting == "num_workers"
    assert plan.step_s == pytest.approx(0.046, rel=0.01)
    assert plan.steps == 60
    assert plan.expected_s("b") < plan.expected_s("a")


def test_by_name(tmp_path: Path) -> None:
    assert planned(tmp_path, "input_bound").finding.rule == "input_bound"


def test_by_number(tmp_path: Path) -> None:
    assert planned(tmp_path, "1").finding.rule == "input_bound"


@pytest.mark.parametrize("wanted", ["0", "9", "nothing"])
def test_unknown_finding_names_the_known(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(UsageError, match="input_bound"):
        planned(tmp_path, wanted)


def test_nothing_to_test(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="compute_bound"):
        planned(tmp_path, stages=CPU_STAGES_MS)


@pytest.mark.parametrize(("meta", "words"), [
    ({"kind": "monitor", "command": []}, "no command"), ({"kind": "import"}, "no command"),
    ({"cwd": "/nowhere/at/all"}, "/nowhere/at/all"), ({"command": ["/nowhere/prog"]}, "/nowhere/prog"),
    ({"command": ["surely-no-such-program"]}, "surely-no-such-program"),
    ({"command": ["python", "gone.py"]}, "gone.py"),
    ({"environment": {"WORLD_SIZE": "4", "RANK": "1"}}, "one process of several")])
def test_runs_that_cannot_be_repeated_say_why(tmp_path: Path, meta: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        planned(tmp_path, meta=meta)


def test_a_run_that_is_being_recorded(tmp_path: Path) -> None:
    meta = {"recorder_pid": os.getpid(), "recorder_start": process_start(),
            "machine": {"hostname": socket.gethostname(), "cores_usable": 8}}
    with pytest.raises(UsageError, match="still being recorded"):
        planned(tmp_path, meta=meta, state="recording")


def test_a_command_is_bounded_and_only_b_is_changed(tmp_path: Path) -> None:
    plan = planned(tmp_path, steps=25)
    a, b = (argv(plan, arm) for arm in "ab")
    assert "--steps=25" in a and "--steps=25" in b
    assert not any(word.startswith("--intervene") for word in a)
    assert any(word.startswith('--intervene={"num_workers"') for word in b)
    assert a[a.index("--") + 1:] == [sys.executable, "train.py"]
    assert {"--lifeline", "--control"} <= set(a)


def test_a_workload_ends_by_itself(tmp_path: Path) -> None:
    workload = {"name": "input_starved", "settings": {"steps": 300, "batch_size": 8, "workers": 0}}
    meta = {"workload": workload, "command": [sys.executable, "-P", "x", "workload-run", "--data=/a b"]}
    plan = planned(tmp_path, meta=meta, steps=40)
    words = argv(plan, "a")
    assert "steps=40" in words and "batch_size=8" in words
    assert "--workload=input_starved" in words and "--data=/a b" in words
    assert not any(word.startswith("--steps") for word in words)
    assert "--" not in words


def test_environment_of_the_program_not_of_its_start(tmp_path: Path) -> None:
    plan = planned(tmp_path, meta={"environment": {
        "LD_PRELOAD": "x.so", "BASH_ENV": "x", "LD_AUDIT": "x.so",
        "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "7", "RANK": "0", "MASTER_ADDR": "x", "PYTHONPATH": "src"}})
    assert plan.program.environment == {"OMP_NUM_THREADS": "1", "PYTHONPATH": "src"}
    assert any("LD_PRELOAD=x.so" in note for note in plan.notes)


def test_short_and_long_runs(tmp_path: Path) -> None:
    assert planned(tmp_path, stages={**SLOW, "data": 5000.0}).steps == 20


WORKLOAD = {"workload": {"name": "input_starved", "settings": {
    "steps": 60, "batch_size": 8, "workers": 0, "threads": 1, "seed": 0}}}


def test_what_the_user_names_takes_the_prediction_of_a_finding_that_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    suggested = planned(tmp_path / "one")
    (tmp_path / "two").mkdir()
    same = planned(tmp_path / "two", tried=f"num_workers={suggested.remedy.after}")
    assert same.prediction == suggested.prediction is not None
    (tmp_path / "three").mkdir()
    other = planned(tmp_path / "three", tried="num_workers=1")
    assert other.finding is None and other.prediction is None
    assert (other.remedy.before, other.remedy.after) == (0, 1)
    assert other.expected_s("a") == other.expected_s("b")


def test_a_healthy_run_has_nothing_to_test_but_what_is_named(tmp_path: Path) -> None:
    plan = planned(tmp_path, tried="pin_memory=true", stages=CPU_STAGES_MS)
    assert plan.start("a") == (plan.program, None)
    assert plan.start("b") == (plan.program, {"pin_memory": True})


def test_a_workload_is_started_with_its_own_setting(tmp_path: Path) -> None:
    plan = planned(tmp_path, meta=WORKLOAD, tried="threads=2")
    assert (plan.remedy.before, plan.remedy.after) == (1, 2)
    assert "threads=1" in argv(plan, "a") and "threads=2" in argv(plan, "b")
    assert not any(word.startswith("--intervene") for word in argv(plan, "b"))


def test_a_workloads_name_for_workers_is_that_of_the_finding(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    best = planned(tmp_path / "one", meta=WORKLOAD).remedy.after
    plan = planned(tmp_path, meta=WORKLOAD, tried=f"workers={best}")
    assert plan.prediction is not None and f"workers={best}" in argv(plan, "b")


def test_two_values_change_both_arms(tmp_path: Path) -> None:
    plan = planned(tmp_path, tried="num_workers=1,2")
    assert any('"num_workers": 1' in word for word in argv(plan, "a"))
    assert any('"num_workers": 2' in word for word in argv(plan, "b"))
    assert plan.finding is None  # the suggestion begins with no worker


def test_stalls_that_the_run_has_anyway_are_known(tmp_path: Path) -> None:
    assert planned(tmp_path).stalls == 0.0
    (tmp_path / "b").mkdir()
    stalling = planned(tmp_path / "b", stages={**SLOW, "other": lambda k: 400.0 * (k in (20, 53))})
    assert stalling.stalls == pytest.approx(2 * 400 / (58 * 46 + 800), rel=0.05)
