from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from profiler.record import private
from profiler.record.private import LEFT_KEPT_S, private_folder, remove_folder
from tests.record.running import PYTHON


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_folders_of_processes_that_were_killed_go(base: Path, gone: int) -> None:
    left, ours, other = base / f"own-{gone}-a", base / f"own-{os.getpid()}-a", base / "own-x"
    for folder in (left, ours, other):
        folder.mkdir()
    (left / "1.0.spool").touch()
    made = private_folder("own-")
    assert sorted(base.iterdir()) == sorted([ours, other, made])
    remove_folder(made)
    assert not made.exists() and made not in private._locks


@contextmanager
def process(code: str, *args: str, **env: str) -> Iterator[None]:
    with subprocess.Popen([PYTHON, "-S", "-c", code, *args], env={**os.environ, **env}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        yield
        child.kill()


def test_a_folder_whose_process_lives_in_another_container_stays(base: Path, gone: int) -> None:
    """Its number tells nothing here; the lock does."""
    folder = base / f"own-{gone}-a"
    folder.mkdir()
    code = ("import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); "
            "print(1, flush=True); input()")
    with process(code, str(folder)):
        made = private_folder("own-")
        assert folder.exists()
    other = private_folder("own-")
    assert not folder.exists()
    remove_folder(made), remove_folder(other)


def test_a_folder_that_a_command_still_sends_to_stays(base: Path, gone: int) -> None:
    folder = base / f"own-{gone}-a"
    folder.mkdir()
    with process("print(1, flush=True); input()", STEPSCOPE_SPOOL=str(folder)):
        remove_folder(private_folder("own-"))
        assert folder.exists()
    remove_folder(private_folder("own-"))
    assert not folder.exists()


def test_without_locks_a_folder_goes_after_a_day(base: Path, gone: int,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(fd: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(private, "_lock", refused)
    old, fresh = base / f"own-{gone}-a", base / f"own-{gone}-b"
    for folder in (old, fresh):
        folder.mkdir()
        then = folder.stat().st_mtime - (0 if folder == fresh else 2 * LEFT_KEPT_S)
        os.utime(folder, (then, then))
    made = private_folder("own-")
    assert sorted(base.iterdir()) == sorted([fresh, made])
    remove_folder(made)
