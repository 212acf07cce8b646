"""Whatever is done to a run file: a result or one RunError; nothing runs, is written or has no end."""

from __future__ import annotations

import sqlite3
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

import pytest

from profiler.cli._traces import analysed
from profiler.errors import DamagedRunError, RunError
from profiler.run import guard
from profiler.run.reader import MOST_PROCESSES, Run
from profiler.run.results import append_result
from tests import fuzzing
from tests.run import fuzz
from tests.run.healthy import Healthy, healthy
from tests.run.mutations import EXTRA, PAGE, case, circle
from tests.run.planned import SECOND, START, read_all, write

FEW = 60


@pytest.fixture(scope="module")
def sources() -> tuple[Healthy, ...]:
    return healthy()


def test_damaged_runs_end_in_a_result_or_one_error(sources: tuple[Healthy, ...], tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(FEW):
        done, name, data = case(sources, number)
        if "bomb" in done:
            continue  # they take seconds: see the slow test
        try:
            outcomes[fuzz.examine(fuzzing.put(Path(tempfile.mkdtemp(dir=tmp_path)), name, data))] += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {done}") from error
    assert outcomes["result"] and outcomes["error"]


def test_what_is_whole_is_read(sources: tuple[Healthy, ...], tmp_path: Path) -> None:
    """The control: what the cases are made from."""
    path = tmp_path / "a.stepscope"
    for source in sources:
        path.write_bytes(source.data)
        assert fuzz.examine(path) == "result", source.name


@pytest.mark.parametrize("script", EXTRA)
def test_a_schema_that_is_not_ours(script: str, tmp_path: Path) -> None:
    """Triggers, views, virtual tables and computed columns are neither run nor read; nothing is written."""
    path = tmp_path / "a.stepscope"
    write(path, [(START + k * SECOND, 1.0) for k in range(3000)])
    db = sqlite3.connect(path)
    db.executescript(script)
    db.close()
    before = path.read_bytes()
    with pytest.raises(DamagedRunError, match="not that of a run file"):
        Run.open(path)
    with pytest.raises(DamagedRunError, match="not that of a run file"):
        append_result(path, "diagnosis", {})
    assert path.read_bytes() == before


def test_pages_in_circles_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interior pages whose children are one page: some kB with rows without end."""
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'output'").fetchone()
    db.executemany("INSERT INTO output VALUES (NULL, 1, ?)", [(b"x" * 100,)] * 20)
    db.commit()
    db.close()
    data = bytearray(path.read_bytes())
    leaf = bytes(data[(root - 1) * PAGE:root * PAGE])
    last = len(data) // PAGE
    data += circle(last + 2) + circle(last + 3) + leaf
    data[(root - 1) * PAGE:root * PAGE] = circle(last + 1)
    data[28:32] = (last + 3).to_bytes(4, "big")
    path.write_bytes(data)
    monkeypatch.setattr(guard, "MOST_ROWS", 1 << 24)
    begin = time.process_time()
    with pytest.raises(DamagedRunError, match="more rows"), Run.open(path) as run:
        run.output()
    assert time.process_time() - begin < 20


def test_a_question_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.stepscope"
    write(path, [(START + k * SECOND, 1.0) for k in range(5000)])
    monkeypatch.setattr(guard, "STEPS", 10)
    monkeypatch.setattr(guard, "MOST_LOOKS", 2)
    with pytest.raises(DamagedRunError, match="does not end"):
        read_all(path)


def test_samples_beyond_what_the_file_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    db = sqlite3.connect(path)
    db.execute("UPDATE block SET n = 1 << 40")
    db.commit()
    db.close()
    with pytest.raises(RunError, match="samples in"):
        Run.open(path)


@pytest.mark.parametrize("level", [0, 1, 6])
def test_samples_of_any_level_count(level: int, tmp_path: Path) -> None:
    """Small blocks that unpack to a million entries each, also where no sample is."""
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    db = sqlite3.connect(path)
    db.executemany("INSERT INTO block SELECT NULL, track, ?, ?, ?, t0_ns, t1_ns, data FROM block LIMIT 1",
                   [(level, k << 20, 1 << 20) for k in range(8)])
    db.commit()
    db.close()
    with pytest.raises(RunError, match="samples in"):
        Run.open(path)


def test_more_processes_than_any_job_has(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    db = sqlite3.connect(path)
    db.executemany("INSERT INTO process VALUES (NULL, ?, 'rank', '', ?, 0, '{}')",
                   [(k, k) for k in range(MOST_PROCESSES + 1)])
    db.commit()
    with pytest.raises(RunError, match="4097 processes"):
        Run.open(path)
    db.execute("DELETE FROM process WHERE pid = 1")
    db.commit()
    db.close()
    assert len(Run.open(path).processes) == MOST_PROCESSES


def test_events_asked_for_again_are_the_ones_there_now(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    with Run.open(path) as run:
        assert run.events() == [] and run.events() == []
        db = sqlite3.connect(path)
        db.execute("INSERT INTO event VALUES (NULL, 1, 'mark', 'info', 'x', NULL, NULL, '{}')")
        db.commit()
        db.close()
        assert len(run.events()) == 1
        run.events().clear()  # what a caller does to its list is its own
        assert len(run.events()) == 1 and not run.events(after_id=1)


@pytest.mark.parametrize("name", ["..", "../../x.json", "/etc/passwd", "a\x00b", "", "n" * 5000, "\x1b[2J"])
def test_an_attachment_name_is_no_path(name: str, sources: tuple[Healthy, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    path.write_bytes(next(source.data for source in sources if source.name == "traced"))
    db = sqlite3.connect(path)
    db.execute("UPDATE attachment SET name = ?", (name,))
    db.commit()
    db.close()
    told = analysed(path)
    assert told is not None and told["partition_ms"]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_attachment_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    data = zlib.compress(bytes(1 << 20))
    db = sqlite3.connect(path)
    for length in (1 << 20, 1 << 30):
        db.execute("INSERT INTO attachment VALUES (NULL, 1, 'kineto', 'b', NULL, '{}', ?, ?, 'zlib', ?)",
                   (length, len(data), data))
    db.commit()
    db.close()
    with Run.open(path) as run:
        assert run.attachment(1) == bytes(1 << 20)
        with pytest.raises(DamagedRunError, match="1073741824"):
            run.attachment(2)


@pytest.mark.slow
def test_two_thousand() -> None:
    records = fuzzing.run(fuzz.FUZZ, 2000, seed=7, workers=2)
    assert fuzzing.report(fuzz.FUZZ, records, 2000, seed=7, keep=None) == 0
