"""My script: commands as typed, which Python runs them, and what that Python says of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.python import Pythons, candidates
from app.script import Script


@pytest.mark.parametrize(
    "script, argv",
    [
        (Script("python train.py -x", "", "/v/bin/python", "."), ("/v/bin/python", "train.py", "-x")),
        (Script("train.py", "--n 3", "/v/bin/python", "."), ("/v/bin/python", "train.py", "--n", "3")),
        (Script("python3 -m pkg.train", "", "/v/bin/python", "."), ("/v/bin/python", "-m", "pkg.train")),
        (Script("/usr/bin/python3 train.py", "", "/v/bin/python", "."), ("/usr/bin/python3", "train.py")),
        (Script("sh -c 'echo  $HOME'", "", "", "."), ("sh", "-c", "echo  $HOME")),
        (Script("", "", "/v/bin/python", "."), ()),
    ],
)
def test_commands_as_typed(script: Script, argv: tuple[str, ...]) -> None:
    assert script.argv() == argv


def test_tools_come_from_beside_the_chosen_python(tmp_path: Path) -> None:
    tool = tmp_path / "torchrun"
    tool.write_text("")
    script = Script("torchrun --nproc-per-node 2 train.py", "", str(tmp_path / "python"), str(tmp_path))
    assert script.argv()[0] == str(tool)
    assert not script.errors() and script.uses_interpreter()


@pytest.mark.parametrize(
    "script, field, words",
    [
        (Script("", "", "", "."), "command", "enter a command"),
        (Script("python 'train.py", "", "", "."), "command", "quote"),
        (Script("python x.py", '"', "", "."), "arguments", "quote"),
        (Script("python no_such.py", "", "", "."), "command", "no_such.py is not in the working directory"),
        (Script("no-such-program", "", "", "."), "command", "not found"),
        (Script("python -V", "", "", "/no/such/folder"), "cwd", "no such folder"),
    ],
)
def test_commands_that_cannot_start(script: Script, field: str, words: str) -> None:
    assert words in script.errors()[field]


def test_pythons_answer_for_themselves(qtbot: QtBot, tmp_path: Path) -> None:
    pythons = Pythons()
    wrong = tmp_path / "python"
    wrong.write_text("#!/bin/sh\nexit 3\n")
    wrong.chmod(0o755)
    pythons.ask([sys.executable, str(wrong), str(tmp_path / "none")])
    qtbot.waitUntil(lambda: len(pythons.found) == 3)
    assert pythons.found[sys.executable].version == ".".join(map(str, sys.version_info[:3]))
    assert "status 3" in pythons.found[str(wrong)].error
    assert "does not exist" in pythons.found[str(tmp_path / "none")].error
    pythons.shut_down()


def test_the_nearest_environment_is_offered_first(tmp_path: Path) -> None:
    local = tmp_path / ".venv" / "bin" / "python"
    local.parent.mkdir(parents=True)
    local.write_text("")
    found = candidates(str(tmp_path), {"PATH": ""})
    assert found[0] == str(local) and sys.executable in found
