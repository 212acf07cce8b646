from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.paths import own_command
from tests.fakes import nvml


def test_prints_rows_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "Python" in out and "Runs folder" in out


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    assert {"name", "state", "text", "hint"} == set(told["checks"][0])


def test_imports_nothing_heavy() -> None:
    code = ("import sys\nfrom profiler.cli import main\nmain(['doctor', '--json'])\n"
            "bad = {'torch', 'numpy', 'PySide6', 'jinja2', 'msgspec'} & set(sys.modules)\n"
            "assert not bad, bad")
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL,
                   cwd=Path(__file__).parents[2])


def test_with_the_stand_in_driver(tmp_path: Path) -> None:
    library = nvml.build(tmp_path / "lib")
    plan = nvml.Plan(tmp_path / "plan", "gpus 2", "name Planned GPU", "driver 570.86", "cuda 12080")
    done = subprocess.run(own_command("doctor", "--json"), env=nvml.environment(library, plan),
                          capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    rows = {row["name"]: row for row in told["checks"]}
    assert rows["GPU 0"]["text"].startswith("Planned GPU")
    assert "driver 570.86" in rows["NVML"]["text"]
    assert {"GPU 0", "GPU 1"} <= rows.keys()
    assert {gpu["name"] for gpu in told["gpus"] or ()} <= {"Planned GPU"}  # none by a build for the CPU
