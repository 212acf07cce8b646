"""The checks for a GPU machine: what of them can be told where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from profiler import catalog
from profiler.paths import HOME
from profiler.sources.nvml import describe
from workloads import _faults

GPU = HOME / "tests" / "gpu"


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module that says how faults are tested on a GPU, which its script finds beside itself."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(GPU))
    yield import_module("faults")
    for name in set(sys.modules) - before:
        if str(GPU) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("name", _faults.names())
def test_each_fault_can_be_set_on_a_gpu(name: str, plan: Any) -> None:
    fault = _faults.fault(name)
    workload, control = plan.control_of(fault)
    assert workload in fault.WORKLOADS
    info = catalog.get(workload)
    for settings in (control, plan.faulty(fault, control)):
        words = [f"{key}={str(value).lower()}" for key, value in settings.items()]
        values = catalog.parse_settings(info, [*words, "device=cuda:0"])
        assert catalog.check(info, values) == {}
    assert fault.NAME not in control


def test_without_a_gpu_nothing_is_claimed(tmp_path: Path) -> None:
    if describe()["state"] == "ok":
        pytest.skip("there is a GPU")
    command = [sys.executable, str(GPU / "check.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 77 and "nothing was tested" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_rehearsed_on_the_cpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(GPU / "check.py"), str(tmp_path), "--rehearse", "--minutes", "20"],
        capture_output=True, text=True)
    told = json.loads((tmp_path / "figures.json").read_text())
    assert done.returncode == 0, [row for row in told["table"] if row[2] is False]
    assert told["rehearsal"] and not [row for row in told["table"] if row[2] and "GPU" in row[0]]
    for name in ("healthy", "starved"):
        run, trace = tmp_path / f"{name}.stepscope", tmp_path / f"{name}.json.gz"
        assert run.is_file() and trace.is_file()
        assert str(HOME).encode() not in run.read_bytes()
