"""Verify on programs that really train: minutes on two cores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiler.experiments.change import first_testable
from profiler.experiments.program import recorded_program
from profiler.paths import own_command
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from tests.record.running import environment

pytestmark = pytest.mark.slow
KNOWN = Path(__file__).resolve().parents[1] / "known"
QUIET = 0.1  # share of the cores that others keep busy, up to which predictions are as narrow as they get


def stepscope(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(own_command(*args), cwd=folder, env=environment(folder), capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def verified(folder: Path, *args: str) -> dict[str, Any]:
    told = json.loads(stepscope(folder, "verify", "--json", *args).stdout)
    assert isinstance(told, dict)
    return told


def test_too_few_workers_are_found_and_the_remedy_gives_what_was_predicted(tmp_path: Path) -> None:
    run = tmp_path / "run.stepscope"
    stepscope(tmp_path, "record", "--workload=input_starved", "--set", "size=smallest", "-o", str(run))
    with Run.open(run) as opened:
        diagnosis = diagnose(opened)
    finding = diagnosis.findings[0]
    assert diagnosis.verdict == "input_bound" and finding.rule == "input_bound" and finding.remedy
    # It waits for storage, so that more than the cores help, but no more than twice as many.
    assert finding.remedy.setting == "num_workers"
    assert 2 <= finding.remedy.after <= 2 * diagnosis.facts.cores
    told = verified(tmp_path, str(run), "input_bound")
    assert told["outcome"] == "improvement"
    assert told["loss"]["state"] == "agrees"
    assert told["step_ms"]["b"] < told["step_ms"]["a"]
    assert told["throughput"]["b"] > told["throughput"]["a"]
    arms = [pair[side] for pair in told["pairs"] for side in "ab"]
    if max([diagnosis.facts.others or 0.0, *(arm["others"] or 0.0 for arm in arms)]) <= QUIET:
        assert told["score"] == "hit", told["ratio"]


def test_a_computing_loader_is_given_no_more_workers_than_cores(tmp_path: Path) -> None:
    run = tmp_path / "run.stepscope"
    stepscope(tmp_path, "record", "--steps=60", "-o", str(run), "--", sys.executable,
              str(KNOWN / "computing_loader.py"))
    with Run.open(run) as opened:
        diagnosis = diagnose(opened)
    assert diagnosis.verdict == "input_bound"
    suggested = [f.remedy.after for f in diagnosis.findings if f.remedy and f.remedy.setting == "num_workers"]
    assert all(after <= diagnosis.facts.cores for after in suggested)


def test_a_healthy_script_has_nothing_to_try_and_a_useless_change_shows_no_difference(tmp_path: Path) -> None:
    run = tmp_path / "run.stepscope"
    stepscope(tmp_path, "record", "--steps=100", "-o", str(run), "--", sys.executable,
              str(KNOWN / "in_memory.py"))
    with Run.open(run) as opened:
        found = first_testable(diagnose(opened).findings, recorded_program(opened.meta))
    assert found is None
    told = verified(tmp_path, str(run), "--try", "cudnn_benchmark=true")  # of no meaning on a CPU
    assert told["outcome"] == "no difference shown" and told["ratio"]["pairs"] == 5
    assert told["prediction"] is None


def test_a_plain_script_is_tested_by_a_placeholder(tmp_path: Path) -> None:
    told = verified(tmp_path, "--try", "workers=0,2", "-o", str(tmp_path / "first.stepscope"), "--",
                    sys.executable, str(KNOWN / "waiting_loader.py"), "{workers}")
    assert told["outcome"] == "improvement"
    assert told["change_ms"]["data"] < 0
