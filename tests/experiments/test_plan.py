from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import UsageError
from profiler.experiments.plan import Plan, make_plan
from profiler.rules.verdict import diagnose
from profiler.run.alive import process_start
from profiler.run.reader import Run
from tests.runs import CPU_STAGES_MS, make_run

SLOW = {"data": 40.0, "forward": 2.0, "backward": 3.0, "optimizer": 1.0}


def planned(tmp_path: Path, wanted: str | None = None, meta: dict[str, Any] | None = None,
            steps: int | None = None, **options: Any) -> Plan:
    (tmp_path / "train.py").touch()
    here = {"command": [sys.executable, "train.py"], "cwd": str(tmp_path)}
    path = make_run(tmp_path / "run.stepscope", meta=here | (meta or {}),
                    **({"stages": SLOW, "data_cpu": 4.0, "host": {"target.cpu": 0.3}} | options))
    with Run.open(path) as run:
        return make_plan(run, diagnose(run), wanted, steps=steps)


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
    a, b = (plan.program.argv(tmp_path / "x", limit_s=60.0, steps=plan.steps, intervene=plan.intervene(arm))
            for arm in "ab")
    assert "--steps=25" in a and "--steps=25" in b
    assert not any(word.startswith("--intervene") for word in a)
    assert any(word.startswith('--intervene={"num_workers"') for word in b)
    assert a[a.index("--") + 1:] == [sys.executable, "train.py"]
    assert {"--lifeline", "--control"} <= set(a)


def test_a_workload_ends_by_itself(tmp_path: Path) -> None:
    workload = {"name": "input_starved", "settings": {"steps": 300, "batch_size": 8, "workers": 0}}
    meta = {"workload": workload, "command": [sys.executable, "-P", "x", "workload-run", "--data=/a b"]}
    plan = planned(tmp_path, meta=meta, steps=40)
    argv = plan.program.argv(tmp_path / "x", limit_s=60.0, steps=plan.steps)
    assert "steps=40" in argv and "batch_size=8" in argv
    assert "--workload=input_starved" in argv and "--data=/a b" in argv
    assert not any(word.startswith("--steps") for word in argv)
    assert "--" not in argv


def test_environment_of_the_program_not_of_its_start(tmp_path: Path) -> None:
    plan = planned(tmp_path, meta={"environment": {
        "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "7", "RANK": "0", "MASTER_ADDR": "x", "PYTHONPATH": "src"}})
    assert plan.program.environment == {"OMP_NUM_THREADS": "1", "PYTHONPATH": "src"}


def test_short_and_long_runs(tmp_path: Path) -> None:
    assert planned(tmp_path, stages={**SLOW, "data": 5000.0}).steps == 20
