"""The spool source on what a probe writes."""

from __future__ import annotations

import gzip
import json

import pytest

from profiler.metrics import METRICS
from profiler.model import STEP_EVALUATION, STEP_PARTIAL
from tests.sources.spooling import OFFSET, Spool


def test_step_becomes_one_sample_per_metric_at_its_end(spool: Spool) -> None:
    spool.write(spool.hello(), spool.step(3))
    sink = spool.read()
    end = spool.t + 40_000_000 + OFFSET
    stored = {track.metric: sink.values(track.metric) for track in sink.tracks}
    expected = {
        "index": 3,
        "wall": 10_000_000,
        "data": 1000,
        "h2d": 200,
        "forward": 300,
        "backward": 400,
        "optimizer": 50,
        "other": 10_000_000 - 1950,
        "data_cpu": 7,
        "thread_cpu": 8,
        "samples": 32,
        "optimizer_calls": 1,
        "syncs": 2,
        "sync": 9,
        "flags": 0,
    }
    assert stored == {f"step.{name}": [(end, value)] for name, value in expected.items()}
    assert set(stored) <= METRICS.keys()
    assert {track.process for track in sink.tracks} == {1}
    assert sink.kinds() == ["first_step"] and sink.events[0].t_ns == end


def test_hello_makes_the_process(spool: Spool) -> None:
    spool.write(spool.hello(rank=2, world=4))
    (process,) = spool.read().processes
    assert (process.pid, process.role, process.rank) == (70, "rank", 2)
    assert process.command == "python train.py --data 'a b'"
    assert process.started_ns == spool.t + OFFSET
    assert process.properties["world"] == 4 and process.properties["python"] == "3.11.2"


def test_target_itself_is_not_added_twice(spool: Spool) -> None:
    spool.tree.pid, spool.tree.process = 70, spool.sink.add_process(70, "target")
    spool.write(spool.hello(), spool.step(0), ["bye", {"steps": 1}])
    sink = spool.read()
    assert len(sink.processes) == 1
    assert sink.processes[0].properties["argv"][1] == "train.py"
    assert sink.processes[0].properties["bye"] == {"steps": 1}
    assert {track.process for track in sink.tracks} == {1}
    assert spool.tree.loops == {70}


def test_unknown_samples_and_null_fields_are_missing_not_zero(spool: Spool) -> None:
    spool.write(spool.step(0, samples=0, data_cpu=None, thread_cpu=None))
    sink = spool.read()
    for metric in ("step.samples", "step.data_cpu", "step.thread_cpu"):
        assert sink.values(metric) == []
    assert len(sink.values("step.wall")) == 1


def test_partial_last_line_waits_for_its_end(spool: Spool) -> None:
    line = json.dumps(spool.step(1)).encode() + b"\n"
    spool.write(spool.step(0), line[:20])
    assert [v for _, v in spool.read().values("step.index")] == [0]
    spool.write(line[20:-1])
    assert [v for _, v in spool.read().values("step.index")] == [0]
    spool.write(line[-1:])
    assert [v for _, v in spool.read().values("step.index")] == [0, 1]
    assert "spool_damaged" not in spool.sink.kinds()


def test_steps_seen_counts_training_steps_of_the_busiest_process(spool: Spool) -> None:
    assert spool.source.steps_seen == 0 and not spool.source.trained
    spool.write(spool.step(0, flags=STEP_EVALUATION, backward=0, optimizer_calls=0), pid=70)
    spool.read()
    assert spool.source.steps_seen == 1 and not spool.source.trained  # inference: every step counts
    spool.write(spool.step(1), spool.step(2), spool.step(3, flags=STEP_PARTIAL), pid=70)
    spool.write(spool.step(0), pid=71)
    spool.read()
    assert spool.source.steps_seen == 2 and spool.source.trained


def test_device_times_carry_the_time_of_their_step(spool: Spool) -> None:
    spool.write(
        spool.step(0), spool.step(1), ["device", 0, {"forward": 77, "h2d": None}, {"data": 5, "optimizer": 6}]
    )
    sink = spool.read()
    first = sink.values("step.wall")[0][0]
    assert sink.values("step.device_forward") == [(first, 77)]
    assert sink.values("step.lag_data") == [(first, 5)]
    assert sink.values("step.lag_optimizer") == [(first, 6)]
    assert sink.values("step.device_h2d") == []


def test_memory_goes_to_the_device_by_uuid(spool: Spool) -> None:
    spool.devices["GPU-b"] = spool.sink.add_device("GPU-b", 1, "B")
    spool.write(
        ["torch", {"version": "2.14", "cuda": "13.0", "device_count": 2, "uuid": {"0": "b", "1": "GPU-z"}}],
        ["memory", spool.t, 0, 10, 20, 30],
        ["memory", spool.t, 1, 11, 21, 31],
        ["memory", spool.t, 7, 12, 22, 32],
    )
    sink = spool.read()
    assert [v for _, v in sink.values("torch.mem_allocated", device=1)] == [10]
    assert [v for _, v in sink.values("torch.mem_peak", device=1)] == [30]
    assert [d.uuid for d in sink.devices] == ["GPU-b", "GPU-z"]  # not known to NVML: told by torch alone
    assert [v for _, v in sink.values("torch.mem_reserved", device=2)] == [21]
    assert [v for _, v in sink.values("torch.mem_reserved", index=7)] == [22]
    assert sink.processes[0].properties["torch"]["version"] == "2.14"


def test_loader_and_sites_become_properties(spool: Spool) -> None:
    training = {"num_workers": 4, "train": True, "site": "train.py:57"}
    evaluation = {"num_workers": 0, "train": False, "site": "train.py:90"}
    spool.write(
        ["loader", training],
        ["loader", evaluation],
        ["site", "forward", "train.py:60"],
        ["site", "sync", "train.py:61"],
        ["site", "sync", "train.py:62"],
    )
    properties = spool.read().processes[0].properties
    assert properties["loader"] == training
    assert properties["loaders"] == {"train.py:57": training, "train.py:90": evaluation}
    assert properties["sites"] == {"forward": ["train.py:60"], "sync": ["train.py:61", "train.py:62"]}


def test_events_pass_through(spool: Spool) -> None:
    spool.write(["event", spool.t, "hook_off", "warning", "backward is not timed", {"hook": "backward"}])
    (event,) = spool.read().events
    assert (event.t_ns, event.kind, event.severity) == (spool.t + OFFSET, "hook_off", "warning")
    assert event.data == {"hook": "backward"} and event.process == 1


def test_segments_are_read_in_order_and_deleted_once_followed(spool: Spool) -> None:
    for number in (0, 1, 9, 10):
        spool.write(spool.step(number), n=number)
    sink = spool.read()
    assert [v for _, v in sink.values("step.index")] == [0, 1, 9, 10]
    # 1 has no successor: whoever writes it may still be about to begin number 2.
    assert sorted(p.name for p in spool.directory.iterdir()) == ["70.1.spool", "70.10.spool"]
    spool.write(spool.step(11), n=10)
    assert [v for _, v in spool.read().values("step.index")] == [0, 1, 9, 10, 11]


def test_end_torn_off_a_closed_segment_is_counted(spool: Spool) -> None:
    spool.write(spool.step(0), b'["step", 1, ', n=0)
    spool.write(spool.step(2), n=1)
    sink = spool.read()
    assert [v for _, v in sink.values("step.index")] == [0, 2]
    spool.source.close(sink, spool.clock)
    assert sink.kinds().count("spool_damaged") == 1
    assert sink.processes[0].properties["damaged_records"] == 1


def test_dropped_records_are_told(spool: Spool) -> None:
    spool.write(["dropped", 3], ["dropped", 9])
    sink = spool.read()
    assert [v for _, v in sink.values("recorder.dropped")] == [12]
    spool.read()
    assert [v for _, v in sink.values("recorder.dropped")] == [12]
    assert sink.kinds() == ["records_dropped"]


def test_trace_is_stored_compressed_and_its_file_deleted(spool: Spool) -> None:
    content = b'{"traceEvents": []}'
    (spool.directory / "a.json").write_bytes(content)
    (spool.directory / "b.json.gz").write_bytes(gzip.compress(content))
    about = {"steps": [30, 38], "size": 19, "valid": True, "note": ""}
    spool.write(
        ["trace", spool.t, spool.t + 5, "a.json", about],
        ["trace", spool.t + 9, spool.t + 11, "b.json.gz", about],
    )
    sink = spool.read()
    assert [gzip.decompress(data) for _, data in sink.attachments] == [content, content]
    first = sink.attachments[0][0]
    assert (first.kind, first.name, first.process, first.t_ns) == ("kineto", "a.json", 1, spool.t + OFFSET)
    assert first.properties["steps"] == [30, 38] and first.properties["valid"] is True
    assert first.properties["t1_ns"] == spool.t + 5 + OFFSET
    assert [p.name for p in spool.directory.iterdir()] == ["70.0.spool"]


def test_counts_of_the_loops_thread_become_rates(spool: Spool) -> None:
    t, second = spool.t, 1_000_000_000
    first = ["thread", t, 10**9, 0, 100, 5, 2]
    spool.write(first, ["thread", t + second // 2, 10**9 + second // 8, second // 4, 600, 15, 2])
    sink = spool.read()
    ended = spool.clock.from_monotonic(t + second // 2)
    told = {"loop.system": 0.25, "loop.waiting": 0.5, "loop.faults": 1000.0, "loop.switches": 20.0}
    for metric, value in told.items():
        assert sink.values(metric) == [(ended, pytest.approx(value))], metric
    assert sink.processes[0].properties["torch_threads"] == 2
    # Another thread, whose counts begin anew; and a kernel that does not count waiting.
    spool.write(["thread", t + second, 0, None, 0, 0, 1],
                ["thread", t + second + 10**8, 10**7, None, 0, 0, 1])
    sink = spool.read()
    assert [v for _, v in sink.values("loop.system")] == [0.25, pytest.approx(0.1)]
    assert len(sink.values("loop.waiting")) == 1 and sink.processes[0].properties["torch_threads"] == 1
