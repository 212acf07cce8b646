"""Chunks and processes change nothing: wherever a file is cut for reading, the trace is the same."""

from __future__ import annotations

import gzip
import json
import os
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.importers import kineto
from profiler.importers.kineto import files, split
from profiler.importers.kineto import source as sources
from profiler.trace.model import Trace
from tests.reference import TRACES, needs_reference
from tests.traces import Timeline

LAYOUTS: dict[str, tuple[int | None, tuple[str, str]]] = {
    "compact": (None, (",", ":")), "usual": (None, (", ", ": ")), "indented": (2, (",", ": "))}


def chunks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Read and unpack so many bytes at a time."""
    monkeypatch.setattr(files, "BLOCK", size)
    monkeypatch.setattr(sources, "BLOCK", size)


def timeline() -> Timeline:
    """With what looks like the end of an event inside texts, lists and objects."""
    line = Timeline(rank=3)
    said = {"Collective name": "allreduce", "Group size": 4, "odd": [{"a": 1}, {"b": {"c": 2}}, {"ph": "X"}]}
    for i in range(12):
        t = 10_000 * i
        line.op('a}, {"ph": "X"', t, t + 9_000, external=i, note='}, {"ph": "X"}, {')
        line.call("cudaLaunchKernel", t + 10, t + 20, i + 1, thread=i % 3)
        line.kernel("nccl, {}", t + 1_000, t + 2_000, i + 1, **said)
        line.memory(t + 5, i)
    return line


def text(layout: str = "usual", times: str = "base") -> bytes:
    document = timeline().document(times=times)
    document["deviceProperties"] = [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}]  # after the events
    indent, separators = LAYOUTS[layout]
    return json.dumps(document, indent=indent, separators=separators).encode()


def columns(trace: Trace) -> dict[str, Any]:
    """Everything in a trace, for comparison."""
    result: dict[str, Any] = {f.name: getattr(trace, f.name) for f in fields(trace)}
    for table in ("host", "device", "syncs", "memory", "collectives"):
        one = result.pop(table)
        result |= {f"{table}.{f.name}": getattr(one, f.name).tolist() for f in fields(one)}
    return result


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", [1, 7, 64, 300, 1000, 5000])
def test_any_size_of_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, block: int) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(text(layout))
    [whole] = kineto.load(path)
    assert len(whole.host) == 24 and len(whole.collectives) == 12 and set(whole.properties) == {0, 1}
    assert not whole.losses.any
    chunks(monkeypatch, block)
    [cut] = kineto.load(path)
    assert columns(cut) == columns(whole)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_anywhere_loses_what_is_behind_it_and_nothing_else(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    whole = text(data.draw(st.sampled_from(list(LAYOUTS))))
    path = tmp_path / "t.json"
    path.write_bytes(whole)
    [full] = kineto.load(path)
    first, last = whole.index(b'"cudaLaunchKernel"'), whole.rindex(b'"Bytes"')
    at = data.draw(st.integers(first, last))
    chunks(monkeypatch, data.draw(st.sampled_from([150, 2000, 1 << 19])))
    path.write_bytes(whole[:at])
    [part] = kineto.load(path)
    assert part.losses.truncated_at is not None and at - 600 < part.losses.truncated_at <= at
    assert part.losses.unreadable == part.losses.invalid == 0
    complete = json.loads(whole)["traceEvents"][:part.losses.events]
    for table, category in (("host", ("cpu_op", "cuda_runtime")), ("device", ("kernel",))):
        rows = getattr(part, table)
        assert len(rows) == sum(e["cat"] in category for e in complete)
        assert rows.start.tolist() == getattr(full, table).start.tolist()[:len(rows)]


def large(path: Path, times: str, layout: str = "usual") -> Path:
    path.write_bytes(text(layout, times))
    return path


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every plain file counts as large; what the reading by several processes answered."""
    answers: list[Any] = []
    read = split.read

    def spy(*args: Any) -> Any:
        answers.append(read(*args))
        return answers[-1]

    monkeypatch.setattr(split, "read", spy)
    monkeypatch.setattr(split, "LARGE", 0)
    monkeypatch.setattr(split, "cpu_quota", lambda: None)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # the tests' own threads do not matter here
    return answers


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only on Linux")
@pytest.mark.parametrize("cores", [2, 3, 4])
@pytest.mark.parametrize("times", ["base", "int", "float"])
def test_any_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: list[Any],
                                 times: str, cores: int) -> None:
    path = large(tmp_path / "t.json", times)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    [alone] = kineto.load(path)
    chunks(monkeypatch, 300)
    monkeypatch.setattr(split, "BLOCK", 2000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    [shared] = kineto.load(path)
    assert [answer is not None for answer in several] == [False, True]
    assert columns(shared) == columns(alone)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only on Linux")
@pytest.mark.parametrize(("quota", "alone"), [(0.5, True), (1.5, True), (2.0, False), (None, False)])
def test_a_container_with_the_time_of_one_core_gets_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: list[Any], quota: float | None, alone: bool
) -> None:
    path = large(tmp_path / "t.json", "base")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(split, "cpu_quota", lambda: quota)
    kineto.load(path)
    assert [answer is None for answer in several] == [alone]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only on Linux")
@pytest.mark.parametrize("harm", ["cut", "nan", "halves", "no list", "quote"])
def test_what_is_odd_is_read_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: list[Any],
                                    harm: str) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    path, whole = tmp_path / "t.json", text()
    lane = b'"pid": 1, "tid": 1, "ts": 1000000000001.5'
    begin = b'{"ph": "B", "name": "x", %b}, {"ph": "E", %b}, ' % (lane, lane)
    at = whole.rindex(b'{"ph": "X", "cat": "cpu_op"')
    path.write_bytes({
        "cut": whole[:-600], "nan": whole.replace(b'"Group size": 4', b'"Group size": nan'),
        "halves": whole[:at] + begin + whole[at:], "no list": whole.replace(b"traceEvents", b"other"),
        "quote": whole[:at] + b'"' + whole[at:]}[harm])
    if harm == "no list":
        with pytest.raises(kineto.TraceError):
            kineto.load(path)
    else:
        [trace] = kineto.load(path)
        assert trace.losses.any or harm == "halves"
        assert len(trace.host) >= 20
    assert several == [None]


@needs_reference
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only on Linux")
def test_a_real_trace_by_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: list[Any]) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(gzip.decompress((TRACES / "v100_float_epoch_us.json.gz").read_bytes()))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    [alone] = kineto.load(path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    [shared] = kineto.load(path)
    assert several[1] is not None
    for table in ("host", "device", "collectives"):
        one, two = getattr(alone, table), getattr(shared, table)
        for field in fields(one):
            if field.name == "thread":
                continue
            a, b = getattr(one, field.name), getattr(two, field.name)
            if field.name in ("name", "dims", "types", "stack", "concrete", "dtype", "group", "ranks"):
                a, b = (np.array([*t.names, None], object)[c] for t, c in ((alone, a), (shared, b)))
            assert (a == b).all(), (table, field.name)


@pytest.mark.parametrize("block", [300, 1 << 19])
def test_order_of_rows_with_the_same_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                           block: int) -> None:
    """Whole microseconds make many: what is outside comes first, wherever the chunks end."""
    line = Timeline()
    for i in range(6):
        t = 2_000 * i
        line.call("cuLaunchKernel", t, t + 1_000, i, driver=True).call("cudaLaunchKernel", t, t + 1_000, i)
        line.op("inner", t, t + 1_000, external=2 * i + 2).op("outer", t, t + 1_000, external=2 * i + 1)
        line.python("forward", t, t + 1_000).step(i, t, t + 1_000)
    path = line.save(tmp_path / "t.json")
    chunks(monkeypatch, block)
    [trace] = kineto.load(path)
    found = [trace.names[code] for code in trace.host.name]
    assert found == [n for i in range(6) for n in (f"ProfilerStep#{i}", "forward", "outer", "inner",
                                                   "cudaLaunchKernel", "cuLaunchKernel")]
