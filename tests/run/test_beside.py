"""What lies beside a run file from a stranger: SQLite would read it, wait for it, or delete what it names."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.errors import DamagedRunError, RunError
from profiler.run import files, guard, opening
from profiler.run.place import beside
from profiler.run.reader import Run
from profiler.run.results import append_result, settle
from profiler.run.writer import RunWriter
from tests.run.beside import journal
from tests.run.planned import SECOND, START, read_all, write

WRITERS: tuple[Callable[[Path], object], ...] = (
    lambda path: append_result(path, "diagnosis", {}), settle, lambda path: files.must_be_free(path, True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "a.stepscope"
    write(path, [(START + k * SECOND, 1.0) for k in range(50)])
    return path


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_forged_journal_deletes_no_file_of_ours(path: Path, tmp_path: Path, through_a_link: bool) -> None:
    """Each way to open a run, with a journal that names a file which SQLite deletes when it has undone it."""
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    beside(path, "-journal").write_bytes(journal(path.read_bytes(), str(precious).encode()))
    opened = path
    if through_a_link:
        opened = tmp_path / "link.stepscope"
        opened.symlink_to(path)
    for use in (Run.open, *WRITERS):
        with pytest.raises(DamagedRunError, match="names another file"):
            use(opened)
        assert precious.read_text() == "mine"


def test_the_forged_journal_is_one_that_works(path: Path, tmp_path: Path) -> None:
    """The control: without our look SQLite deletes the file."""
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    beside(path, "-journal").write_bytes(journal(path.read_bytes(), str(precious).encode()))
    db = sqlite3.connect(path)
    db.execute("BEGIN IMMEDIATE")
    db.close()
    assert not precious.exists()


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_is_not_waited_for(path: Path, ending: str, kind: str) -> None:
    odd = beside(path, ending)
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "link":
        odd.symlink_to("/etc/hostname")
    else:
        odd.mkdir()
    for use in (Run.open, *WRITERS):
        with pytest.raises(RunError, match="no regular file"):
            use(path)


def test_a_change_that_was_cut_off_is_undone_in_a_copy(path: Path) -> None:
    """A journal as SQLite leaves it: the run is read as it was before, and nothing beside it is touched."""
    whole = path.read_bytes()
    log = journal(whole, pages=len(whole) // 4096)
    beside(path, "-journal").write_bytes(log)
    torn = whole[:4096 * 2] + bytes(4096) + whole[4096 * 3:]
    path.write_bytes(torn)
    assert read_all(path) == 50
    assert path.read_bytes() == torn and beside(path, "-journal").read_bytes() == log
    append_result(path, "diagnosis", {})
    assert read_all(path) == 50 and not beside(path, "-journal").exists()


def test_a_file_of_holes_is_not_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terabyte that takes no room where it lies would fill the disk as a copy."""
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    beside(path, "-journal").write_bytes(journal(whole, pages=1))
    copied: list[object] = []
    monkeypatch.setattr(opening.shutil, "copyfile", lambda *_: copied.append(_))
    with Run.open(path) as run:
        assert run.tracks and not copied
        assert run.lacks is not None and f"{path.name}-journal could not be read: no room" in run.lacks


def test_holes_do_not_allow_for_more_samples(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("UPDATE block SET n = ?", (2 * guard.MOST_ENTRIES,))
    db.commit()
    db.close()
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(RunError, match="samples in"):
        Run.open(path)


def test_a_new_run_takes_nothing_over_from_an_old_one(path: Path) -> None:
    """A journal that is left of a file that is gone would be put into the new one."""
    old = path.read_bytes()
    beside(path, "-journal").write_bytes(journal(old, pages=len(old) // 4096))
    path.unlink()
    writer = RunWriter.create(path, {"name": "new", "start_ns": START})
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert run.meta["name"] == "new"


def test_the_layout_of_our_journal() -> None:
    assert struct.unpack(">I", journal(bytes(8192), pages=2)[8:12]) == (2,)
