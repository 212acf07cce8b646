from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from profiler.record.session import LEFT_KEPT_S, private_folder


def test_folders_of_processes_that_were_killed_go_after_a_day(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    old, fresh = tmp_path / f"own-{gone.pid}-a", tmp_path / f"own-{gone.pid}-b"
    ours, other = tmp_path / f"own-{os.getpid()}-a", tmp_path / "own-x"
    for folder in (old, fresh, ours, other):
        folder.mkdir()
        then = folder.stat().st_mtime - (0 if folder == fresh else 2 * LEFT_KEPT_S)
        os.utime(folder, (then, then))
    made = private_folder("own-")
    assert sorted(tmp_path.iterdir()) == sorted([fresh, ours, other, made])
