"""Every spelling and form of times that Kineto has had gives the same trace (T16)."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.importers import kineto
from profiler.trace.model import NONE, Kind, Trace
from tests.traces import BASE_NS, EPOCH_US, PID, Timeline

TEXTS = {"name", "dims", "types", "stack", "concrete", "dtype", "group", "ranks"}


def timeline() -> Timeline:
    line = Timeline(rank=1, world_size=2)
    line.step(5, 0, 100_000)
    line.op("aten::addmm", 1_000, 30_000, external=7, sequence=3, dims=[[2, 3], []], types=["float", "Int"],
            stack="a.py(1): f;b.py(2): g", **{"Concrete Inputs": ["", "1"]})
    line.call("cudaLaunchKernel", 5_000, 9_000, 11, external=7)
    line.op("AddmmBackward0", 40_000, 60_000, thread=2, sequence=3, forward_thread=1)
    line.kernel("gemm", 10_000, 20_000, 11, external=7, grid=[4, 2, 1], block=[128, 1, 1], registers=32,
                shared=1024)
    line.memcpy("Memcpy HtoD (Pageable -> Device)", 61_000, 62_000, 12, stream=8, bytes=4096)
    line.memset(63_000, 64_000, 13, bytes=16)
    line.memory(2_000, 512, address=2**63 + 5, allocated=512, reserved=2048)
    return line


def rows(trace: Trace, table: str) -> list[dict[str, Any]]:
    """A table with its texts and threads written out."""
    columns = getattr(trace, table)
    result: list[dict[str, Any]] = [{} for _ in range(len(columns))]
    for field in fields(columns):
        for row, value in zip(result, getattr(columns, field.name).tolist(), strict=True):
            if field.name in TEXTS:
                row[field.name] = trace.names[value] if value >= 0 else None
            elif field.name == "thread":
                row[field.name] = (trace.threads[value].pid, trace.threads[value].tid)
            else:
                row[field.name] = value
    return result


def loaded(tmp_path: Path, document: Any) -> Trace:
    path = tmp_path / "t.json"
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    [trace] = kineto.load(path)
    return trace


@pytest.mark.parametrize("times", ["base", "float", "int"])
@pytest.mark.parametrize("spelling", ["new", "old"])
def test_every_form_gives_the_same_rows(spelling: str, times: str) -> None:
    trace, plain = timeline().trace(spelling, times), timeline().trace()
    for table in ("host", "device", "memory"):
        assert rows(trace, table) == rows(plain, table)
    assert trace.resolution_ns == plain.resolution_ns == 1000  # every time is a whole microsecond here
    assert trace.base_ns == plain.base_ns == EPOCH_US * 1000 and trace.absolute
    assert (trace.rank, trace.world_size, trace.notes) == (1, 2, ())


def test_what_the_columns_hold() -> None:
    trace = timeline().trace()
    step, op, call, node = rows(trace, "host")
    assert step["name"] == "ProfilerStep#5" and step["kind"] == Kind.ANNOTATION
    assert op == {"start": 1_000, "end": 30_000, "name": "aten::addmm", "kind": Kind.OPERATOR,
                  "thread": (PID, 1), "correlation": NONE, "external": 7, "sequence": 3,
                  "forward_thread": NONE,
                  "dims": "[[2,3],[]]", "types": '["float","Int"]', "stack": "a.py(1): f;b.py(2): g",
                  "concrete": '["","1"]'}
    assert (call["kind"], call["correlation"], call["external"], call["dims"]) == (Kind.RUNTIME, 11, 7, None)
    assert (node["thread"], node["sequence"], node["forward_thread"]) == ((PID, 2), 3, 1)
    gemm, copy, fill = rows(trace, "device")
    assert gemm == {"start": 10_000, "end": 20_000, "name": "gemm", "kind": Kind.KERNEL, "device": 0,
                    "stream": 7, "correlation": 11, "external": 7, "bytes": NONE, "grid": 8, "block": 128,
                    "registers": 32, "shared": 1024}
    assert (copy["kind"], copy["stream"], copy["bytes"], copy["grid"]) == (Kind.MEMCPY, 8, 4096, NONE)
    assert (fill["kind"], fill["bytes"]) == (Kind.MEMSET, 16)
    [memory] = rows(trace, "memory")
    assert memory == {"time": 2_000, "thread": (PID, 1), "device_type": 1, "device": 0, "bytes": 512,
                      "address": -(2**63) + 5, "allocated": 512, "reserved": 2048}


def test_the_trace_begins_at_its_first_event_and_rows_are_sorted() -> None:
    line = Timeline().op("b", 7_000_000, 8_000_000).op("a", 7_000_000, 9_000_000)
    trace = line.op("c", 5_000_000, 6_000_000).trace()
    assert [r["name"] for r in rows(trace, "host")] == ["c", "a", "b"]
    assert trace.host.start.tolist() == [0, 2_000_000, 2_000_000]
    assert trace.base_ns == EPOCH_US * 1000 + 5_000_000


def test_text_numbers_and_lanes(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": "1", "tid": "stream 9",
             "ts": "1700000000000000.125", "dur": "2.5",
             "args": {"correlation": "12", "grid": ["2", 1, 1], "registers per thread": "x"}}
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "pid": 3, "tid": 4,
            "ts": "1700000000000010", "dur": 1, "args": {"device": 2, "stream": 5, "bytes": "9216"}}
    [kernel, memcpy] = rows(loaded(tmp_path, [event, copy]), "device")
    assert (kernel["start"], kernel["end"], kernel["device"], kernel["stream"]) == (125, 2_625, 1, 9)
    assert (kernel["correlation"], kernel["grid"], kernel["registers"]) == (12, 2, NONE)
    assert (memcpy["start"], memcpy["device"], memcpy["stream"], memcpy["bytes"]) == (10_000, 2, 5, 9216)


def test_times_since_the_epoch_keep_their_nanoseconds(tmp_path: Path) -> None:
    """A double of 1.7e15 has steps of a quarter of a microsecond; the text has all three decimals."""
    stamps = ["1712195495519689.047", "1712195495519695.812", "1712195495519698.6"]
    events = ",".join(f'{{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":{t},"dur":1.001}}'
                      for t in stamps)
    trace = loaded(tmp_path, f'{{"traceEvents":[{events}]}}'.encode())
    assert trace.host.start.tolist() == [47, 6_812, 9_600]
    assert trace.host.end.tolist() == [1_048, 7_813, 10_601]
    assert trace.base_ns == 1_712_195_495_519_689_000 and trace.resolution_ns == 1


def test_a_base_is_added_and_its_absence_is_said(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 100, "dur": 1}
    trace = loaded(tmp_path, {"traceEvents": [event]})
    assert (trace.base_ns, trace.absolute) == (100_000, False)
    trace = loaded(tmp_path, {"traceEvents": [event], "baseTimeNanoseconds": BASE_NS})
    assert (trace.base_ns, trace.absolute) == (BASE_NS + 100_000, True)


@pytest.mark.parametrize("category, kind", [
    ("Kernel", Kind.KERNEL), ("concurrent_kernel", Kind.KERNEL), ("GPU_MEMCPY", Kind.MEMCPY),
    ("gpu_memset", Kind.MEMSET), ("xpu_memcpy", Kind.MEMCPY), ("some_engine", Kind.DEVICE_OTHER)])
def test_device_categories_of_any_vendor(tmp_path: Path, category: str, kind: Kind) -> None:
    event = {"ph": "X", "cat": category, "name": "x", "pid": 0, "tid": 3, "ts": 1, "dur": 2,
             "args": {"stream": 3, "device": 0}}
    trace = loaded(tmp_path, [event])
    assert trace.device.kind.tolist() == [kind] and len(trace.host) == 0


@pytest.mark.parametrize("category, kind", [
    ("Runtime", Kind.RUNTIME), ("xpu_runtime", Kind.RUNTIME), ("privateuse1_driver", Kind.DRIVER),
    ("python_function", Kind.PYTHON), ("overhead", Kind.OVERHEAD), ("whatever", Kind.HOST_OTHER),
    (None, Kind.HOST_OTHER), (["a"], Kind.HOST_OTHER)])
def test_host_categories_of_any_vendor(tmp_path: Path, category: Any, kind: Kind) -> None:
    event = {"ph": "X", "cat": category, "name": "x", "pid": 9, "tid": 3, "ts": 1, "dur": 2}
    trace = loaded(tmp_path, [event])
    assert trace.host.kind.tolist() == [kind] and len(trace.device) == 0


def test_rows_that_are_no_work_are_left_out() -> None:
    line = timeline()
    plain = line.trace()
    for cat in ("gpu_user_annotation", "Trace", "cuda_profiler_range"):
        line.event(cat, "ProfilerStep#5", 10_000, 90_000, 0, 7, {})
    trace = line.trace()
    assert (len(trace.host), len(trace.device)) == (len(plain.host), len(plain.device))
    assert trace.losses.events == plain.losses.events + 3 and not trace.losses.any


def test_annotations_in_old_spelling() -> None:
    """An operator without `::`, not inside another one and no node of autograd (definitions, section 4)."""
    line = Timeline().step(1, 0, 100_000).annotation("my block", 1_000, 40_000)
    line.op("aten::add_", 2_000, 9_000).op("add_", 3_000, 8_000)
    line.op("AddBackward0", 10_000, 12_000).op("torch::autograd::AccumulateGrad", 13_000, 14_000)
    line.op("AccumulateGrad", 15_000, 16_000).annotation("Backward", 41_000, 50_000)
    line.op("aten::mul", 3_000, 8_000, thread=2).annotation("other thread", 9_000, 10_000, thread=2)
    trace = line.trace("old", "int")
    kinds = {row["name"]: Kind(row["kind"]) for row in rows(trace, "host")}
    annotations = {name for name, kind in kinds.items() if kind == Kind.ANNOTATION}
    assert annotations == {"ProfilerStep#1", "my block", "Backward", "other thread"}
    assert set(kinds.values()) == {Kind.ANNOTATION, Kind.OPERATOR}
    new = {row["name"]: Kind(row["kind"]) for row in rows(line.trace("new", "int"), "host")}
    assert new == kinds


def test_synchronisation_rows() -> None:
    line = Timeline().op("x", 0, 9_000)
    line.sync_row("Stream Wait Event", 1_000, 2_000, 31, stream=7, wait_stream=20, wait_record=30)
    line.sync_row("Context Sync", 3_000, 4_000, 32, stream=-1)
    trace = line.trace()
    wait, context = rows(trace, "syncs")
    assert (wait["name"], wait["stream"], wait["wait_stream"], wait["wait_record"]) == (
        "Stream Wait Event", 7, 20, 30)
    assert (context["name"], context["stream"], context["wait_stream"], context["correlation"]) == (
        "Context Sync", -1, NONE, 32)
    assert len(trace.device) == 0


def test_collectives_of_kernels_and_of_calls() -> None:
    said = {"Collective name": "allreduce", "dtype": "Float", "Process Group Name": "0",
            "Process Group Ranks": "[0, 1]", "Group size": 2, "In msg nelems": 1000, "Out msg nelems": "1000"}
    line = Timeline().op("x", 0, 1_000).op("record_param_comms", 2_000, 3_000, **said, Seq=4)
    line.kernel("gemm", 1_000, 2_000, 1).kernel("ncclDevKernel_AllReduce", 4_000, 5_000, 2, **said)
    trace = line.trace()
    of_call, of_kernel = rows(trace, "collectives")
    assert trace.names[trace.host.name[of_call["host"]]] == "record_param_comms" and of_call["device"] == NONE
    assert trace.names[trace.device.name[of_kernel["device"]]] == "ncclDevKernel_AllReduce"
    assert (of_call["sequence"], of_kernel["sequence"]) == (4, NONE)
    for row in (of_call, of_kernel):
        assert (row["name"], row["dtype"], row["group"]) == ("allreduce", "Float", "0")
        assert row["ranks"] == "[0, 1]"
        assert (row["group_size"], row["elements_in"], row["elements_out"]) == (2, 1000, 1000)


def test_begin_and_end_written_apart(tmp_path: Path) -> None:
    lane = {"pid": 1, "tid": 1}
    events = [{"ph": "B", "cat": "cpu_op", "name": "outer", "ts": 10, **lane, "args": {"External id": 5}},
              {"ph": "B", "cat": "cpu_op", "name": "inner", "ts": 12.5, **lane},
              {"ph": "B", "cat": "cpu_op", "name": "elsewhere", "ts": 11, "pid": 1, "tid": 2},
              {"ph": "E", "ts": 14, "pid": "1", "tid": 1}, {"ph": "E", "ts": 20, **lane}]
    trace = loaded(tmp_path, events)
    found = {r["name"]: (r["start"], r["end"], r["external"]) for r in rows(trace, "host")}
    assert found == {"outer": (0, 10_000, 5), "inner": (2_500, 4_000, NONE)}
    assert trace.losses.unfinished == 1 and "elsewhere" in trace.losses.examples[0]


def test_large_integers(tmp_path: Path) -> None:
    """Ids beyond 64 bits' sign, and beyond 64 bits, are no reason to lose an event."""
    said = {"Comms Id": 10159970886766084423, "External id": 2**64 + 1, "Sequence number": 2**63}
    event = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 0, "tid": 1, "ts": 200,
             "dur": 100, "args": said}
    [row] = rows(loaded(tmp_path, [event]), "host")
    assert (row["end"], row["external"], row["sequence"]) == (100_000, NONE, NONE)


def test_names_of_threads_and_what_the_file_says(tmp_path: Path) -> None:
    document = timeline().document()
    document["traceEvents"] += [
        {"ph": "M", "name": "thread_name", "pid": PID, "tid": "1", "args": {"name": "thread 1 (python)"}},
        {"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "args": {"name": "python3"}},
        {"ph": "X", "cat": "cpu_op", "name": "odd lane", "pid": "Spans", "tid": "Main",
         "ts": 1000000000000.0, "dur": 1}]
    document["deviceProperties"] = [{"id": 0, "name": "A"}, {"name": "without id"}, {"id": "2", "name": "C"},
                                    None, {"id": -1}, {"id": [3]}]
    document["traceName"], document["blob"] = "x.json", "y" * 100_000
    trace = loaded(tmp_path, document)
    named = {t.tid: t.name for t in trace.threads}
    assert named[1] == "thread 1 (python)" and named[2] == ""
    [odd] = [t for t in trace.threads if t.label]
    assert odd.label == "Spans Main" and odd.pid < 0 and odd.tid < 0
    assert {k: p["name"] for k, p in trace.properties.items()} == {0: "A", 2: "C"}
    assert trace.metadata["traceName"] == "x.json" and trace.metadata["process_name"] == "python3"
    assert "blob" not in trace.metadata and "traceEvents" not in trace.metadata


@pytest.mark.parametrize("name, rank", [
    ("worker3_step_12.1694.pt.trace.json", 3), ("trace_8_rank_1.json", 1), ("rank-07.json", 7),
    ("resnet50_workers0.json", None), ("8ranks.json", None), ("trace.json", None)])
def test_rank_from_the_name_where_the_file_does_not_say(tmp_path: Path, name: str, rank: int | None) -> None:
    assert Timeline().op("x", 0, 1).trace(name=name).rank == rank
    assert Timeline(rank=5).op("x", 0, 1).trace(name=name).rank == 5
    assert Timeline(distributedInfo={"rank": "?"}).op("x", 0, 1).trace(name=name).rank == rank


def test_kernels_may_start_before_their_launch_and_launches_may_lack_kernels() -> None:
    """T09, T15: neither is changed or made up; what it means is for the analysis to say."""
    line = Timeline().call("cudaLaunchKernel", 10_000, 20_000, 1).call("cudaLaunchKernel", 30_000, 40_000, 2)
    line.kernel("early", 7_000, 9_000, 1)
    trace = line.trace()
    assert trace.device.start.tolist() == [0] and trace.host.start.tolist() == [3_000, 23_000]
    assert trace.host.correlation.tolist() == [1, 2] and trace.device.correlation.tolist() == [1]
    assert len(Timeline().call("cudaLaunchKernel", 0, 1_000, 1).trace().device) == 0


def test_steps_on_two_threads_stay_two_rows() -> None:
    """T11: which of them counts is for the analysis."""
    line = Timeline().step(4, 0, 10_000).step(5, 10_000, 20_000).step(4, 1_000, 9_000, thread=2)
    trace = line.trace()
    assert [(r["name"], r["thread"][1]) for r in rows(trace, "host")] == [
        ("ProfilerStep#4", 1), ("ProfilerStep#4", 2), ("ProfilerStep#5", 1)]


def test_dtypes() -> None:
    trace = timeline().trace()
    for table, column, dtype in (
            ("host", "start", np.int64), ("host", "kind", np.uint8), ("host", "dims", np.int32),
            ("device", "grid", np.int64), ("device", "block", np.int32), ("syncs", "start", np.int64),
            ("memory", "address", np.int64), ("collectives", "host", np.int32)):
        assert getattr(getattr(trace, table), column).dtype == dtype


def test_shapes_as_the_oldest_files_spell_them(tmp_path: Path) -> None:
    """Some have "Input dims", also beside others that have "Input Dims"."""
    line = timeline()
    line.op("aten::relu", 31_000, 32_000)
    document = line.document("old")
    for event in document["traceEvents"]:
        args = event.setdefault("args", {})
        if event.get("name") == "aten::addmm":
            args["Input dims"] = args.pop("Input Dims")
        if event.get("name") == "aten::relu":
            args["Input Dims"] = [[7]]
    found = {row["name"]: row["dims"] for row in rows(loaded(tmp_path, document), "host")}
    assert found["aten::addmm"] == "[[2,3],[]]"
    assert found["aten::relu"] == "[[7]]"
