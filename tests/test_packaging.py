"""The wheel and the editable install, in a hostile folder and with a hostile PYTHONPATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("profiler", "app", "workloads", "assets", "stepscope_files")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(out), str(ROOT))
    return next(out.glob("stepscope-*.whl"))


def pip(*args: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def environment(tmp_path: Path) -> Path:
    """A virtual environment of its own that sees the packages of the one the tests run in."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    # Dependencies only: a folder named in a .pth file does not have its own .pth files read.
    (Path(site) / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def installed(form: str, wheel: Path, tmp_path: Path) -> Path:
    """The interpreter of an environment that has StepScope in this form."""
    python = environment(tmp_path)
    what = [str(wheel)] if form == "wheel" else ["-e", str(ROOT)]
    pip("--python", str(python), "install", "--no-deps", "--no-build-isolation", "--no-index", *what)
    return python


def hostile(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A working directory and a PYTHONPATH that both hold modules of our names."""
    folders = [tmp_path / "cwd", tmp_path / "pythonpath"]
    for folder in folders:
        folder.mkdir()
        (folder / "profiler.py").write_text("raise SystemExit('the wrong profiler')")
        for name in ("app", "workloads"):
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(f"raise SystemExit('the wrong {name}')")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STEPSCOPE"))}
    return folders[0], {**env, "PYTHONPATH": str(folders[1]), "STEPSCOPE_CACHE": str(tmp_path / "cache")}


TRAIN = """
import app, profiler_of_mine, sys, workloads_of_mine
import torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.DataLoader([torch.ones(8)] * 64, batch_size=8)
for batch in data:
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained", len(data), app.MARK)
"""


@pytest.mark.parametrize("form", ["wheel", "editable"])
def test_a_hostile_folder_changes_nothing(form: str, wheel: Path, tmp_path: Path) -> None:
    python = installed(form, wheel, tmp_path)
    cwd, env = hostile(tmp_path)
    command = str(python.parent / "stepscope")

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=120)

    listed = run("workloads", "--json")
    assert listed.returncode == 0, listed.stderr
    assert "input_starved" in listed.stdout

    done = run("record", "--workload", "input_starved", "--set", "steps=6", "-o", "own.stepscope")
    assert done.returncode == 0, done.stderr
    told = run("diagnose", "own.stepscope", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["steps"]["total"] == 6


@pytest.mark.parametrize("form", ["wheel", "editable"])
def test_a_users_modules_of_our_names_are_theirs(form: str, wheel: Path, tmp_path: Path) -> None:
    """The user's script sees its own `app` and others, not ours, when it is recorded."""
    python = installed(form, wheel, tmp_path)
    cwd, env = hostile(tmp_path)
    (cwd / "app" / "__init__.py").write_text("MARK = 'mine'")
    (cwd / "profiler_of_mine.py").write_text("import runpy")
    (cwd / "workloads_of_mine.py").write_text("")
    (cwd / "train.py").write_text(TRAIN)
    done = subprocess.run(
        [str(python.parent / "stepscope"), "record", "-o", "run.stepscope", "--", str(python), "train.py"],
        cwd=cwd, env=env, capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained 8 mine\n"


def test_the_wheel_puts_only_our_own_names_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"stepscope.py", "stepscope_files"}


def test_importing_stepscope_brings_nothing_else() -> None:
    code = f"import sys; import stepscope; print(sorted(set(sys.modules) & {set(OURS)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
