"""Whatever is done to a trace: a result that says what was lost, or one TraceError."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from pathlib import Path

import pytest

from profiler.errors import TraceError
from profiler.importers import kineto
from tests.importers import fuzz
from tests.importers.healthy import healthy, training
from tests.importers.mutations import case

FEW = 300
SYNTHETIC = healthy(real=False)


@pytest.mark.parametrize("start", range(0, FEW, 50))
def test_damaged_traces_end_in_a_result_or_one_error(start: int, tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(start, start + 50):
        done, name, data = case(SYNTHETIC, number)
        path = tmp_path / name
        path.write_bytes(data)
        try:
            outcomes[fuzz.examine(path)] += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {done}") from error
    assert outcomes["noted"] and outcomes["error"] < 50  # neither all refused nor nothing noticed


def test_the_undamaged_trace_is_a_result(tmp_path: Path) -> None:
    """The control: what the cases are made from has nothing to be told about it."""
    [trace] = kineto.load(training().save(tmp_path / "trace.json"))
    assert not trace.losses.any
    assert fuzz.examine(tmp_path / "trace.json") in ("result", "noted")


def test_a_case_can_be_had_again() -> None:
    assert [case(SYNTHETIC, n) for n in range(20)] == [case(healthy(real=False), n) for n in range(20)]


@pytest.mark.parametrize("broken", [ValueError("no reason"), RecursionError(), MemoryError()])
def test_any_other_error_is_a_failure(broken: Exception, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise broken

    monkeypatch.setattr(fuzz, "diagnose", fail)
    with pytest.raises(type(broken)):
        fuzz.examine(training().save(tmp_path / "trace.json"))
    monkeypatch.setattr(fuzz, "diagnose", lambda *_: (_ for _ in ()).throw(TraceError("It is none")))
    assert fuzz.examine(tmp_path / "trace.json") == "error"


@pytest.mark.parametrize("packed", [False, True])
def test_a_refused_file_leaves_no_reader_behind(packed: bool, tmp_path: Path) -> None:
    """A thread that read on after its file was closed would take bytes of the next one."""
    text = b'no trace at all, but long' * 100_000
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    before = threading.active_count()
    said = set()
    for _ in range(10):
        with pytest.raises(TraceError) as error:
            kineto.load(path)
        said.add(str(error.value))
        del error
    assert len(said) == 1 and "begins with" in said.pop()
    assert threading.active_count() == before


@pytest.mark.slow
def test_ten_thousand() -> None:
    records = fuzz.run(10_000, seed=0, workers=2)
    assert fuzz.report(records, 10_000, seed=0, keep=None) == 0
