"""Values that a run file may hold and a run cannot: any type in any column, numbers without end."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from itertools import product
from pathlib import Path

import pytest

from profiler.errors import DamagedRunError, RunError
from profiler.run import samples
from profiler.run.reader import Run
from profiler.run.results import append_result
from profiler.run.writer import RunWriter
from tests.run.planned import SECOND, START, loosened, read_all, write

DEEP = "[" * 100_000, '{"a":' * 500 + "1" + "}" * 500
WRONG = (None, "x", -1, 2_000_000_000, float("inf"), b"\xff\x00", "[1]", '{"a": 1, "name": 1}',
         "9" * 400, *DEEP)
META = {
    "name": "n", "start_ns": START, "command": ["a"], "exit": {"code": 0}, "machine": {"cpu": "c"},
    "workload": {"name": "w", "settings": {}}, "environment": {"A": "b"}, "gpu": {"state": "ok"},
    "overhead": {"cpu_share": 0.1, "sources": {"host": {"ticks": 1}}}, "anchors": [[1, 2]], "rate_hz": 10.0,
}


def _has_its_types(run: Run) -> None:
    for item in (*run.devices, *run.processes, *run.tracks, *run.events(), *run.attachments()):
        for field in dataclasses.fields(item):
            value = getattr(item, field.name)
            kinds = {"int": int, "str": str, "int | None": int | None}.get(str(field.type), dict)
            assert isinstance(value, kinds), (field.name, value)
    for key, planned in META.items():
        value = run.meta.get(key)
        assert value is None or isinstance(value, type(planned) if key != "rate_hz" else int | float), key
    assert all(isinstance(item, str) for item in run.meta.get("command") or ())
    assert all(isinstance(piece, bytes) for _, _, piece in run.output())


@pytest.mark.parametrize("table", ["device", "process", "track", "journal", "block", "event", "attachment",
                                   "output", "result", "meta"])
def test_any_value_in_any_column(tmp_path: Path, table: str) -> None:
    """A result or our error; what is read has the types that it is said to have."""
    path = tmp_path / "a.stepscope"
    writer = RunWriter.create(path, META)
    track = writer.track("gpu.util", device=writer.add_device("GPU-1", 0, "H200"))
    writer.add_process(1, "target")
    writer.sample(track, START, 1.0)
    writer.commit()
    writer.event(START, "mark", "info", "mark")
    writer.attach(START, "kineto", "t.json", b"text")
    writer.output(START, b"step")
    writer.finish("finished", START + SECOND)
    append_result(path, "diagnosis", {"verdict": "unknown"})
    good, refused = path.read_bytes(), 0
    with contextlib.closing(sqlite3.connect(path)) as db:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    for column, value in product(columns, WRONG):
        path.write_bytes(good)
        with loosened(path) as db, contextlib.suppress(sqlite3.IntegrityError):
            db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        try:
            read_all(path)
            with Run.open(path) as run:
                _has_its_types(run)
        except RunError as error:
            refused += 1
            assert str(error).isprintable()
        with contextlib.suppress(RunError):
            append_result(path, "diagnosis", {})
    assert refused or table == "journal"  # empty once finished


def test_numbers_in_meta_are_finite_and_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.stepscope"
    write(path, [(START, 1.0)])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for key, text in (("a", "[NaN, 1e999, -Infinity, 1.5]"), ("b", "1" + "0" * 30), ("c", "null")):
            db.execute("INSERT INTO meta VALUES (?, ?)", (key, text))
    with Run.open(path) as run:
        assert (run.meta["a"], run.meta["b"], run.meta["c"]) == ([None, None, None, 1.5], None, None)


def test_a_small_file_cannot_ask_for_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of equal values packs a million into some kB: there is a limit to what is loaded at once."""
    path = tmp_path / "a.stepscope"
    track = write(path, ((START + i * SECOND, float(i)) for i in range(3000)))
    monkeypatch.setattr(samples, "MOST_LOADED", 1000)
    with Run.open(path) as run:
        with pytest.raises(DamagedRunError, match="1000"):
            run.values(track)
        assert len(run.series(track, points=20).t_ns) > 10
