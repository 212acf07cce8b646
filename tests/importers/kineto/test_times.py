"""Times are exact to the nanosecond in every form that has them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.importers import kineto
from profiler.importers.kineto.times import UNUSABLE, Clock, InexactTimes, between, durations

NS = st.integers(0, 10**13)  # within three hours of each other
FORMS = {
    "base": (1_700_000_000 * 10**3, lambda ns: str(ns / 1000)),  # floats from a base, as doubles hold them
    "text": (1_700_000_000 * 10**9, lambda ns: f'"{ns // 1000}.{ns % 1000:03}"'),
    "epoch": (1_700_000_000 * 10**9, lambda ns: f"{ns // 1000}.{ns % 1000:03}"),
    "whole": (1_700_000_000 * 10**9, lambda ns: str(ns // 1000)),
}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("form", FORMS)
@given(times=st.lists(st.tuples(NS, st.integers(0, 10**10)), min_size=1, max_size=30))
def test_written_and_read(tmp_path: Path, form: str, times: list[tuple[int, int]]) -> None:
    zero, spell = FORMS[form]
    if form == "whole":
        times = [(start // 1000 * 1000, duration // 1000 * 1000) for start, duration in times]
    events = ",".join(f'{{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":{spell(zero + start)},'
                      f'"dur":{Decimal(duration) / 1000}}}' for start, duration in times)
    path = tmp_path / "t.json"
    path.write_text(f"[{events}]", "utf-8")
    [trace] = kineto.load(path)
    found = sorted(zip((trace.host.start + trace.base_ns).tolist(), (trace.host.end + trace.base_ns).tolist(),
                       strict=True))
    assert found == sorted((zero + start, zero + start + duration) for start, duration in times)
    assert trace.absolute == (form != "base")


def test_a_chunk_of_floats_too_large_is_asked_for_as_text() -> None:
    clock = Clock()
    with pytest.raises(InexactTimes):
        clock.starts([1.7e15, 1.7e15 + 1])
    assert clock.starts([1.7e12, 1.7e12 + 1.5]).tolist() == [0, 1_500]


def test_what_is_no_time() -> None:
    clock = Clock()
    odd = [None, "", "soon", "nan", "inf", "1e400", True, [1], {"a": 1}, 10**30, "1e999999999", -(10**17)]
    assert clock.starts([1000, 2000, *odd]).tolist()[2:] == [UNUSABLE] * len(odd)
    assert durations([1, *odd]).tolist() == [1_000, *[UNUSABLE] * len(odd)]
    assert durations(["2.5", "7", 1.0004, " 3 "]).tolist() == [2_500, 7_000, 1_000, 3_000]
    # An event of years: what is some times as long as it would not fit into 64 bits.
    for long in (10**15, 1e15, "1000000000000000.5"):
        assert durations([1, long]).tolist() == [1_000, UNUSABLE]
    assert durations([86_400_000_000]).tolist() == [86_400 * 10**9]
    assert durations([-1, -0.5]).tolist() == [-1_000, -500]  # for the caller to say what it means


def test_between() -> None:
    assert Decimal(str(between("1700000000000000.001", "1700000000000001.5"))) == Decimal("1.499")
    assert between(None, 1) is None and between(1, "x") is None


def test_resolution(tmp_path: Path) -> None:
    for ts, resolution in ((1.0, 1000), (1.5, 1), (2, 1000)):
        event = {"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": 1, "ts": ts, "dur": 3}
        (tmp_path / "t.json").write_text(json.dumps([event, {**event, "ts": 7}]), "utf-8")
        assert kineto.load(tmp_path / "t.json")[0].resolution_ns == resolution
