"""What the doctor says of AMD GPUs, and of a PyTorch that does not fit them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from profiler.doctor import gpu, software
from profiler.paths import own_command
from profiler.sources._amd_library import NO_BINDING, has_nvidia
from tests.fakes import amdsmi_plan

NVIDIA = {"state": "absent", "cause": "no_library", "reason": "no NVIDIA driver", "hint": "", "devices": []}


def doctor(tmp_path: Path, plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows by their name."""
    env = amdsmi_plan.environment(tmp_path / "plan.json", plan)
    done = subprocess.run(own_command("doctor", "--json"), env=env, capture_output=True, timeout=60)
    assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["checks"]}


@pytest.mark.skipif(has_nvidia(), reason="this machine has another GPU to tell of")
def test_each_gpu_with_its_driver_and_who_uses_it(tmp_path: Path) -> None:
    found = doctor(tmp_path, {"values": {"processes:1": [[os.getpid(), 1 << 30]]}})
    assert found["AMD GPU 0"]["state"] == "ok" and "GPU" not in found
    assert found["AMD GPU 0"]["text"] == "AMD Stand-in MI300X, 192.0\u00a0GiB, driver 6.14.14"
    assert f"pid {os.getpid()}, 1.0\u00a0GiB" in found["AMD GPU 1"]["text"]
    assert found["AMD SMI"]["text"] == "amdsmi 7.0.2"


@pytest.mark.skipif(has_nvidia(), reason="this machine has another GPU to tell of")
def test_a_package_without_a_gpu_is_no_row(tmp_path: Path) -> None:
    found = doctor(tmp_path, {"gpus": 0})
    assert found["GPU"]["state"] == "absent" and not [name for name in found if "AMD" in name]


def test_a_gpu_that_cannot_be_asked_is_told_with_the_fix_and_without_nvidias() -> None:
    cause, reason, hint = NO_BINDING
    amd = {"state": "absent", "cause": cause, "reason": reason, "hint": hint, "devices": [], "hardware": True}
    [row] = [r for r in gpu.rows({**NVIDIA, "amd": amd}) if r.name == "GPU"]
    assert (row.state, row.text, row.hint) == ("absent", reason, hint)


def test_parts_of_a_split_card_are_named_so() -> None:
    part = {"index": 3, "name": "AMD Instinct MI300X", "memory_total": 1 << 34, "part": 3}
    row = gpu.device_check("AMD GPU 3", part, "6.14")
    assert "part 3 of a split card" in row.text


@pytest.mark.parametrize(("line", "nvidia", "amd", "state"), [
    ("hip = '6.4'", False, True, "ok"), ("hip = '6.4'", True, False, "warning"),
    ("hip = '6.4'", False, False, "ok"), ("cuda = '13.0'", False, True, "warning"),
    ("cuda = '13.0'", True, True, "ok"), ("", False, True, "warning"),
])
def test_the_build_of_torch_fits_the_gpu(
    tmp_path: Path, line: str, nvidia: bool, amd: bool, state: str
) -> None:
    (tmp_path / "version.py").write_text(f"__version__ = '2.9.0'\n{line}\n")
    assert software.torch_check(tmp_path, None, nvidia, "13.0", amd).state == state
