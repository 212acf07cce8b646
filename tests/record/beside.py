"""A command without us, and recorded: what must be the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from tests.record.running import environment, opened, record

ADDRESS = re.compile(rb"0x[0-9a-f]+")
LONG = 120.0


def bare(folder: Path, *command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    options = {"cwd": folder, "env": environment(folder), "capture_output": True, "timeout": LONG, **options}
    return subprocess.run(command, check=False, **options)


def status(done: subprocess.CompletedProcess[bytes]) -> int:
    """As a shell tells it."""
    return 128 - done.returncode if done.returncode < 0 else done.returncode


def same(folder: Path, *command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The command without us and recorded: the same status, output and errors. Returns the recorded one."""
    plain = bare(folder, *command, **options)
    done = record(folder, "--force", "--", *command, **{"timeout": LONG, **options})
    assert done.returncode == status(plain)
    assert done.stdout == plain.stdout
    errors, said = (ADDRESS.sub(b"", text) for text in (plain.stderr, done.stderr))
    assert said.startswith(errors)
    rest = said[len(errors):].decode().splitlines()
    assert all(line.startswith("stepscope: ") for line in rest), rest
    with opened(folder) as run:
        assert run.meta["exit"]["code"] == status(plain)
        assert run.state == ("finished" if status(plain) == 0 else "partial")
    return done
