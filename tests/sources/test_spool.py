from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from profiler.metrics import METRICS
from profiler.model import STEP_EVALUATION, STEP_PARTIAL
from profiler.sources.spool import SpoolSource
from profiler.sources.tree import TargetTree
from tests.fakes.sink import ListSink

OFFSET = 1_000_000_000_000  # of the run's clock over the monotonic one


class Clock:
    def now_ns(self) -> int:
        return self.from_monotonic(time.monotonic_ns())

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns + OFFSET


class Spool:
    """A spool directory with a source on it; `write` appends as a probe does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sink = ListSink()
        self.clock = Clock()
        self.tree = TargetTree()
        self.devices: dict[str, int] = {}
        self.source = SpoolSource(directory, self.tree, self.devices)
        self.source.open(self.sink, self.clock)
        self.t = time.monotonic_ns() - 1_000_000_000

    def write(self, *records: Any, pid: int = 70, n: int = 0) -> None:
        lines = b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records)
        with self.path(pid, n).open("ab") as file:
            file.write(lines)

    def path(self, pid: int = 70, n: int = 0) -> Path:
        return self.directory / f"{pid}.{n}.spool"

    def read(self) -> ListSink:
        self.source.read(self.sink, self.clock)
        return self.sink

    def step(self, index: int, **values: Any) -> list[Any]:
        t0 = self.t + index * 10_000_000
        row = {
            "t0": t0,
            "t1": t0 + 10_000_000,
            "data": 1000,
            "h2d": 200,
            "forward": 300,
            "backward": 400,
            "optimizer": 50,
            "data_cpu": 7,
            "thread_cpu": 8,
            "samples": 32,
            "optimizer_calls": 1,
            "syncs": 2,
            "sync_ns": 9,
            "flags": 0,
        } | values
        return ["step", index, *row.values()]

    def hello(self, **values: Any) -> list[Any]:
        return [
            "hello",
            {
                "version": 1,
                "pid": 70,
                "ppid": 1,
                "t": self.t,
                "python": "3.11.2",
                "argv": ["python", "train.py", "--data", "a b"],
                "rank": None,
                "world": None,
            }
            | values,
        ]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


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
