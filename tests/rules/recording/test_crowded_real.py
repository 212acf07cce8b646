"""Crowded hosts and short operators, recorded for real: some ten seconds each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiler.paths import own_command
from tests.record.running import environment

pytestmark = pytest.mark.slow
KNOWN = Path(__file__).resolve().parents[2] / "known"


def diagnosed(folder: Path, *words: str) -> dict[str, Any]:
    """What `diagnose --json` says of a recording."""
    run = folder / "run.stepscope"
    for command in (("record", "-o", str(run), *words), ("diagnose", "--json", str(run))):
        done = subprocess.run(own_command(*command), cwd=folder, env=environment(folder), capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def warns(found: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in found["findings"] if finding["severity"] != "info"}


@pytest.mark.parametrize(("arguments", "crowded"), [((), True), (("1", "0"), False)])
def test_workers_and_threads_above_the_cores(
        tmp_path: Path, arguments: tuple[str, ...], crowded: bool) -> None:
    found = diagnosed(tmp_path, "--", sys.executable, str(KNOWN / "oversubscribed.py"), *arguments)
    assert ("threads" in warns(found)) == crowded
    if crowded:
        finding = next(f for f in found["findings"] if f["rule"] == "threads")
        assert finding["remedy"]["setting"] == "threads" and finding["evidence"][0]["value"] > 1


FAULTS = [
    ("allocator_churn", "allocator_bound", "host_bound"),
    ("thread_oversubscription", "threads", "compute_bound"),
    ("tiny_kernels", "launch_bound", "compute_bound")]


@pytest.mark.parametrize(("dial", "rule", "verdict"), FAULTS)
def test_a_fault_is_named(tmp_path: Path, dial: str, rule: str, verdict: str) -> None:
    settings = ("size=smallest", "device=cpu", "threads=1", f"{dial}=1")
    found = diagnosed(tmp_path, "--workload=language_model", "--trace-steps=8",
                      *(word for setting in settings for word in ("--set", setting)))
    assert found["verdict"] == verdict and rule in warns(found)
