"""Made data: once, whole or not at all, the same bytes each time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.paths import HOME
from tests.waiting import until
from workloads import _store
from workloads._common import WorkloadError
from workloads._store import made_once

RECIPE = {"kind": "things", "count": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_made_once_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "a").write_text("a")

    first = made_once("things", RECIPE, 5_000_000, make)
    assert "about 5.0 MB" in capsys.readouterr().err
    assert made_once("things", RECIPE, 5_000_000, make) == first
    assert (first / "a").read_text() == "a" and len(calls) == 1
    assert capsys.readouterr().err == ""
    assert made_once("things", {**RECIPE, "count": 3}, 5, make) != first


def test_an_interruption_leaves_nothing(cache: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_once("things", RECIPE, 5, make)
    assert list(cache.iterdir()) == []


def test_a_kill_leaves_nothing_that_counts(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = ("import signal, sys\n"
            "from workloads._store import made_once\n"
            "def make(folder):\n"
            "    (folder / 'half').write_text('x')\n"
            "    signal.pause()\n"
            f"made_once('things', {RECIPE!r}, 5, make)\n")
    child = subprocess.Popen([sys.executable, "-c", code], cwd=HOME, stderr=subprocess.DEVNULL,
                             env={**os.environ, "PYTHONPATH": str(HOME)})
    until(lambda: list(cache.glob(".things-*/half")), what="the making has begun")
    child.send_signal(signal.SIGKILL)
    child.wait()

    made = made_once("things", RECIPE, 5, lambda folder: None)
    assert [p.name for p in made.iterdir()] == ["recipe.json"]
    assert list(cache.glob(".things-*"))  # fresh: another process might be at it

    made.rename(cache / "aside")
    monkeypatch.setattr(_store, "STALE_SECONDS", -1)
    made_once("things", RECIPE, 5, lambda folder: None)
    assert not list(cache.glob(".things-*"))


def test_only_what_nobody_works_on_is_removed(cache: Path) -> None:
    busy, left = cache / ".things-0123456789ab.abcd_123", cache / ".other-ba9876543210.efgh4567"
    for folder in (busy, left, cache / ".somebody-else.s"):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "a").write_text("a")
    for path in cache.rglob("*"):
        if path != busy / "deep" / "a":  # the files of a making may all go to one folder deep inside
            os.utime(path, (1, 1))
    made_once("things", RECIPE, 5, lambda folder: None)
    assert busy.is_dir() and not left.exists() and (cache / ".somebody-else.s").is_dir()


def test_two_that_make_the_same_agree(cache: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "a").write_text("slow")
        if not list(cache.glob("things-*")):
            made_once("things", RECIPE, 5, lambda inner: (inner / "a").write_text("fast") and None)

    assert (made_once("things", RECIPE, 5, make) / "a").read_text() == "fast"
    assert len(list(cache.iterdir())) == 1


def test_what_a_clean_up_has_left_is_made_anew(cache: Path) -> None:
    def make(folder: Path) -> None:
        for name in "abc":
            (folder / name).write_text(name)

    made = made_once("things", RECIPE, 5, make)
    (made / "a").unlink()
    (made / "recipe.json").unlink()
    assert made_once("things", RECIPE, 5, make) == made and (made / "a").is_file()
    assert len(list(cache.iterdir())) == 1


def test_no_room_is_told_before(cache: Path) -> None:
    with pytest.raises(WorkloadError, match="MB free"):
        made_once("things", RECIPE, 10**18, lambda folder: pytest.fail("must not begin"))


def test_a_cache_that_cannot_be_written_is_one_line(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(WorkloadError, match="STEPSCOPE_CACHE"):
        made_once("things", RECIPE, 5, lambda folder: None)


def test_a_disk_that_fills_is_one_line(cache: Path) -> None:
    def make(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(WorkloadError, match="No space left on device"):
        made_once("things", RECIPE, 5, make)
    assert list(cache.iterdir()) == []


def test_pictures_and_text_are_deterministic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from workloads import _text
    from workloads._pictures import made_pictures

    monkeypatch.setattr(_text, "SIZE", 40_000)
    contents = []
    for name in ("one", "two"):
        monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / name))
        folder = made_pictures(12, 40, 50)
        files = sorted(folder.rglob("*.jpg"))
        text = _text.made_text().read_bytes()
        assert len(files) == 12 and len(text) == 40_000
        contents.append([text, *(p.read_bytes() for p in files)])
    assert contents[0] == contents[1]
    assert len(set(contents[0])) == 13
