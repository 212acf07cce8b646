"""Whatever a target sends, and whatever lies in a folder to resume: a result or one error."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from profiler.experiments.matrix import store
from tests import fuzzing
from tests.record import fuzz

FEW = 150


def test_damaged_records_end_in_a_result_or_one_error(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    source = store.code()
    for number in range(FEW):
        done, name, data = fuzz.case(source, number, 0)
        try:
            outcomes[fuzz.examine(fuzzing.put(Path(tempfile.mkdtemp(dir=tmp_path)), name, data))] += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {done}") from error
    assert outcomes["result"] and outcomes["error"]


def test_a_case_can_be_had_again() -> None:
    assert [fuzz.case("x", n, 3) for n in range(40)] == [fuzz.case("x", n, 3) for n in range(40)]


def test_any_other_error_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_: Path) -> dict[str, object]:
        raise RecursionError

    monkeypatch.setattr(store, "finished", broken)
    (tmp_path / store.LINES).touch()
    with pytest.raises(RecursionError):
        fuzz.examine(tmp_path / store.LINES)
