"""Doctor asks for the GPUs in a process of its own: a library that crashes or hangs is a row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiler.paths import own_command
from profiler.sources import _apart
from tests.fakes import nvml


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


def doctor(library: Path, tmp_path: Path, *lines: str) -> dict[str, dict[str, Any]]:
    """Rows by their name."""
    env = nvml.environment(library, nvml.Plan(tmp_path / "plan", *lines))
    done = subprocess.run(own_command("doctor", "--json"), env=env, capture_output=True, timeout=60)
    assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["checks"]}


def test_what_the_driver_tells(library: Path, tmp_path: Path) -> None:
    rows = doctor(library, tmp_path, "gpus 1", "procs 1", f"proc_pid {os.getpid()}", "proc_mem 1073741824")
    assert rows["GPU"]["state"] == "warning" and f"pid {os.getpid()}, 1.0\u00a0GiB" in rows["GPU"]["text"]
    assert "driver 580" in rows["NVML"]["text"]


@pytest.mark.parametrize("symbol", ["nvmlInitWithFlags", "nvmlDeviceGetMigMode"])
def test_n17_a_library_that_crashes_is_a_row(library: Path, tmp_path: Path, symbol: str) -> None:
    rows = doctor(library, tmp_path, f"crash {symbol} 11")
    assert f"the GPU driver's library crashed (SIGSEGV) in {symbol}" in rows["GPU"]["text"]
    assert rows["GPU"]["hint"] and "Runs folder" in rows


def test_n11_a_library_that_hangs_is_said(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = nvml.environment(library, nvml.Plan(tmp_path / "plan", "hang nvmlInitWithFlags"))
    monkeypatch.setattr(_apart, "PATIENCE_S", 1.0)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    told = _apart.describe_apart()["nvml"]
    assert (told["state"], told["cause"], told["devices"]) == ("absent", "hangs", []) and told["hint"]


def test_answers_that_are_none_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for code in ("print('no JSON')", "print('[]')", "raise SystemExit('out of luck')"):
        monkeypatch.setattr(_apart, "own_command", lambda *_, code=code: [sys.executable, "-c", code])
        told = _apart.describe_apart()["nvml"]
        assert told["cause"] == "unknown" and "could not be asked" in told["reason"]
    assert "out of luck" in told["reason"]
