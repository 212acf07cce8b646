"""The stand-in beside the real package: same functions, parameters, members, keys and exceptions.

The real package runs in a process of its own, on a library that answers every call with success and zeros.
The test is skipped where it is not installed: `STEPSCOPE_REAL_AMDSMI` names a Python that has it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ASKER = Path(__file__).with_name("amd_shapes.py")


def _python() -> str | None:
    """A Python that has the package, and is not taken in by the stand-in."""
    named = os.environ.get("STEPSCOPE_REAL_AMDSMI")
    return named or (sys.executable if find_spec("amdsmi") is not None else None)


def _shapes(python: str, env: dict[str, str]) -> dict[str, Any]:
    told = subprocess.run([python, str(ASKER)], env=env, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


def _stub(python: str, folder: Path) -> Path:
    """A library with every function of the package's, all of which answer 0."""
    code = "import importlib.util as u; print(u.find_spec('amdsmi').submodule_search_locations[0])"
    where = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    wrapper = (Path(where) / "amdsmi_wrapper.py").read_text()
    names = sorted(set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", wrapper)))
    source = folder / "stub.c"
    source.write_text("".join(f"int {name}() {{ return 0; }}\n" for name in names))
    command = ["cc", "-w", "-shared", "-fPIC", "-o", str(folder / "libamd_smi.so"), str(source)]
    subprocess.run(command, check=True)
    return folder


@pytest.mark.skipif(_python() is None or not shutil.which("cc"), reason="needs the package and a compiler")
def test_the_stand_in_is_like_the_package(tmp_path: Path) -> None:
    python = _python()
    assert python is not None
    standin = str(Path(__file__).parents[1] / "fakes" / "amdsmi_standin")
    others = ("PYTHONPATH", "ROCM_PATH", "ROCM_HOME")
    clean = {key: value for key, value in os.environ.items() if key not in others}
    real = _shapes(python, {**clean, "LD_LIBRARY_PATH": str(_stub(python, tmp_path))})
    ours = _shapes(sys.executable, {**clean, "PYTHONPATH": standin})
    assert real["version"].split(".")[0] == ours["version"].split(".")[0]
    for part in ("parameters", "keys", "exceptions"):
        for name, told in ours[part].items():
            assert told == real[part][name], (part, name)
    for name, members in ours["members"].items():
        assert members.items() <= real["members"][name].items(), name
