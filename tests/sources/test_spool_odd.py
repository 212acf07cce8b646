"""The spool source on what no probe should write: none of it may stop or spoil the rest."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.sources.spool import SpoolSource
from tests.sources.spooling import Spool

ODD = [
    b"\n",
    b"not json\n",
    b"{}\n",
    b"[]\n",
    b"[1]\n",
    b"[null]\n",
    b'["what"]\n',
    b"\xff\xfe\n",
    b"[" * 100_000 + b"\n",
    b'["hello"]\n',
    b'["hello", 3]\n',
    b'["hello", {"t": "x"}]\n',
    b'["torch", {"uuid": {"x": 1}}]\n',
    b'["step"]\n',
    b'["memory", 1, 2, 3, 4, 5]\n',
    b'["loader", []]\n',
    b'["site", 1, 2]\n',
    b'["event", 1]\n',
    b'["bye"]\n',
    b'["dropped", -1]\n',
    b'["dropped", true]\n',
    b'["dropped", 1e400]\n',
    b'["dropped", ' + b"9" * 5000 + b"]\n",
    b'["device", -1, {}, {}]\n',
    b'["trace", 1, 2, 3, 4]\n',
]


def test_trace_outside_the_directory_is_refused(
    spool: Spool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.json"
    outside.write_text("secret")
    (spool.directory / "link.json").symlink_to(outside)
    (spool.directory / "empty.json").touch()
    names = (str(outside), f"../{outside.parent.name}/secret.json", "link.json", "..", "", "no.json", "a\0b")
    spool.write(*(["trace", spool.t, spool.t, name, {}] for name in (*names, "empty.json")))
    sink = spool.read()
    assert sink.attachments == [] and outside.exists()
    spool.source.close(sink, spool.clock)
    assert sink.processes[0].properties["damaged_records"] == len(names)
    assert "trace_lost" in sink.kinds()


@pytest.mark.parametrize("line", ODD, ids=lambda line: repr(line[:30]))
def test_odd_line_is_counted_and_costs_nothing_else(spool: Spool, line: bytes) -> None:
    spool.write(spool.step(0), line, line, spool.step(1))
    sink = spool.read()
    assert [v for _, v in sink.values("step.index")] == [0, 1]
    spool.source.close(sink, spool.clock)
    assert sink.kinds().count("spool_damaged") == 1
    assert sink.processes[0].properties["damaged_records"] == 2


@pytest.mark.parametrize(
    "values",
    [
        {"t1": 10**18},
        {"t0": 5, "t1": 6},
        {"t1": -1},
        {"data": -1},
        {"data": float("nan")},
        {"data": float("inf")},
        {"forward": "12"},
        {"flags": True},
        {"samples": 2**60},
        {"backward": [1]},
        {"t1": None},
        {"data": 1.5},
    ],
)
def test_impossible_step_is_left_out_whole(spool: Spool, values: dict[str, Any]) -> None:
    spool.write(spool.step(0), spool.step(1, **values), spool.step(2))
    sink = spool.read()
    for metric in ("step.index", "step.wall", "step.data", "step.flags"):
        assert len(sink.values(metric)) == 2
    assert [v for _, v in sink.values("step.index")] == [0, 2]
    assert "spool_damaged" in sink.kinds()


def test_step_that_ends_before_the_last_one_is_left_out(spool: Spool) -> None:
    spool.write(spool.step(5), spool.step(4), spool.step(6))
    assert [v for _, v in spool.read().values("step.index")] == [5, 6]


def test_text_that_is_no_utf8_and_values_that_are_no_json_are_made_harmless(spool: Spool) -> None:
    spool.write(
        b'["loader", {"dataset": "a\\ud800b", "batch_size": NaN, "train": true, "x": 1e999}]\n',
        ["event", spool.t, "mark", "info", "x" * 10_000, {"deep": [[[[[[[1]]]]]]]}],
    )
    sink = spool.read()
    loader = sink.processes[0].properties["loader"]
    assert loader["dataset"] == "a?b" and loader["batch_size"] is None and loader["x"] is None
    json.dumps(sink.processes[0].properties, allow_nan=False).encode("utf-8")
    assert len(sink.events[0].text) == 1000


def test_overlong_line_is_skipped_without_being_kept(spool: Spool) -> None:
    spool.write(spool.step(0), b"x" * (9 << 20))
    spool.read()
    spool.write(b"x" * 100 + b"\n", spool.step(1))
    assert [v for _, v in spool.read().values("step.index")] == [0, 1]
    spool.source.close(spool.sink, spool.clock)
    assert spool.sink.processes[0].properties["damaged_records"] == 1


def test_other_files_and_a_missing_directory_are_no_error(spool: Spool) -> None:
    (spool.directory / "x.spool").write_text("x\n")
    (spool.directory / "trace_now").write_text("8")
    (spool.directory / "5.0.spool").mkdir()
    assert spool.read().tracks == []
    gone = SpoolSource(spool.directory / "gone")
    gone.open(spool.sink, spool.clock)
    gone.read(spool.sink, spool.clock)
    assert (spool.directory / "trace_now").exists()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["GPU-1", "info", "a.json"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
CODES = ("hello", "torch", "step", "device", "memory", "loader", "site", "event", "trace", "dropped", "bye",
         "thread")


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(records=st.lists(st.tuples(st.sampled_from(CODES), st.lists(JSON, max_size=17)), max_size=5))
def test_no_record_of_any_shape_stops_the_source(
    records: list[tuple[str, list[Any]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool"))
    spool.write(*([code, *rest] for code, rest in records), spool.step(7))
    sink = spool.read()
    spool.source.close(sink, spool.clock)
    assert 7 in [v for _, v in sink.values("step.index")]
    now = spool.clock.now_ns()
    assert all(math.isfinite(value) and now - 10**11 < t_ns < now + 10**10 for _, t_ns, value in sink.samples)
    for process in sink.processes:
        json.dumps(process.properties, allow_nan=False).encode()


@pytest.mark.parametrize("kind", ["pipe", "link", "endless", "sparse"])
def test_what_is_no_segment_does_not_hold_it_up(spool: Spool, kind: str) -> None:
    """A pipe waits for a writer, a device never ends, a hole of 200 GB takes minutes to read."""
    path = spool.path(71, 0)
    if kind == "pipe":
        os.mkfifo(path)
        os.mkfifo(spool.directory / "trace.json")
        spool.write(["trace", spool.t, spool.t, "trace.json", {}])
    elif kind == "link":
        outside = spool.directory.parent / "outside"
        outside.write_text(json.dumps(spool.step(0)) + "\n")
        path.symlink_to(outside)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(200 << 30)
    spool.write(spool.step(0))
    sink = spool.read()
    assert [value for _, value in sink.values("step.index")] == [0]
    assert sink.attachments == []
