"""What goes into a run file through the writer is what the reader gives."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import NotARunError, RunError
from profiler.model import Attachment, Device, Event, Process, Track
from profiler.run import filesystem
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.run.planned import SECOND, START, Clock, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.stepscope"


def test_everything_comes_back(path: Path) -> None:
    writer = RunWriter.create(path, {"name": "one", "start_ns": START, "command": ["python", "train.py"]})
    device = writer.add_device("GPU-1", 0, "H200", memory_total=1 << 37, properties={"arch": "hopper"})
    process = writer.add_process(42, "target", command="python train.py", started_ns=START)
    track = writer.track("gpu.util", device=device, properties={"method": "nvml"})
    writer.set_meta("exit", {"code": 0})
    writer.sample(track, START + 1_499, 0.5)
    writer.event(START, "mark", "info", "here", process=process, data={"loss": float("nan")})
    writer.attach(START, "kineto", "t.json", b"[]" * 1000, process=process, properties={"steps": [1, 2]})
    writer.attach(START, "kineto", "t.json.gz", b"\x1f\x8b not unpacked")
    writer.output(START, b"step 1\r")
    writer.update_process(process, {"num_workers": 4})
    writer.commit()
    with Run.open(path) as run:
        assert run.state == "recording"
        assert run.meta["command"] == ["python", "train.py"] and run.meta["exit"] == {"code": 0}
        assert run.devices == [Device(1, "GPU-1", 0, "H200", "cuda", 1 << 37, {"arch": "hopper"})]
        assert run.processes == [
            Process(1, 42, "target", "python train.py", None, START, {"num_workers": 4})]
        assert run.tracks == [Track(1, "gpu.util", 1, None, None, {"method": "nvml"})]
        assert run.latest(track) == (START + 1_000, 0.5)
        assert run.events() == [Event(1, START, "mark", "info", "here", None, 1, {"loss": None})]
        assert run.events(after_id=1) == []
        first, second = run.attachments()
        assert first == Attachment(1, START, "kineto", "t.json", 1, first.size, {"steps": [1, 2]})
        assert first.size < 100
        assert run.attachment(1) == b"[]" * 1000
        assert run.attachment(second.id) == b"\x1f\x8b not unpacked"
        assert run.output() == [(1, START, b"step 1\r")]
        assert (run.start_ns, run.end_ns) == (START, START + 1_000)
    writer.finish("finished", START + SECOND)
    assert [file.name for file in path.parent.iterdir()] == ["a.stepscope"]
    with Run.open(path) as run:
        assert (run.state, run.end_ns) == ("finished", START + SECOND)
        assert run.values(track)[1].tolist() == [0.5]


def test_equals_get_the_same_id(path: Path) -> None:
    writer = RunWriter.create(path, {})
    assert writer.add_device("GPU-1", 0, "a") == writer.add_device("GPU-1", 3, "a") == 1
    assert writer.add_device("GPU-2", 1, "a") == 2
    assert writer.add_process(7, "target", started_ns=1, properties={"a": 1}) == 1
    assert writer.add_process(7, "rank", rank=3, started_ns=1, properties={"b": 2}) == 1
    assert writer.add_process(7, "python", started_ns=2) == 2
    ids = [writer.track("host.core", index=core) for core in (0, 1, 0)]
    assert ids == [1, 2, 1]
    assert writer.track("host.core", index=0, process=1) == 3
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert [device.index for device in run.devices] == [0, 1]
        assert [(p.role, p.rank, p.properties) for p in run.processes] == [
            ("target", 3, {"a": 1, "b": 2}), ("python", None, {})]
        assert len(run.tracks) == 3
        assert run.find("host.core", index=0) == [run.tracks[0], run.tracks[2]]
        assert run.find("host.core", index=0, process=1) == [run.tracks[2]]
        assert run.find("gpu.util") == []


def test_what_is_not_finite_is_missing(path: Path) -> None:
    numbers = [1.0, float("nan"), float("inf"), 2.0, float("-inf")]
    track = write(path, [(START + i, v) for i, v in enumerate(numbers)])
    with Run.open(path) as run:
        assert run.values(track)[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_very_short_runs(path: Path, count: int) -> None:
    track = write(path, [(START + i * SECOND, float(i)) for i in range(count)])
    with Run.open(path) as run:
        series = run.series(track, points=10)
        assert series.exact and len(series.t_ns) == count
        assert run.end_ns >= run.start_ns == START


def test_threads_lose_nothing(path: Path) -> None:
    writer = RunWriter.create(path, {}, clock=Clock())
    stop = threading.Event()

    def read(core: int) -> None:
        track = writer.track("host.core", index=core)
        for i in range(5000):
            writer.sample(track, START + i * 1000, float(i))
            if i % 1000 == 0:
                writer.event(START + i, "mark", "info", str(core))
        if core == 0:
            stop.set()

    threads = [threading.Thread(target=read, args=(core,)) for core in range(4)]
    for thread in threads:
        thread.start()
    while not stop.is_set():
        writer.commit()
        writer._clock.now += 10  # type: ignore[attr-defined]
    for thread in threads:
        thread.join()
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert len(run.events()) == 20
        for track in run.tracks:
            assert np.array_equal(run.values(track.id)[1], np.arange(5000.0))


def test_a_commit_without_news_writes_nothing(path: Path) -> None:
    writer = RunWriter.create(path, {})
    log = path.with_name("a.stepscope-wal")
    writer.event(START, "mark", "info", "")
    writer.commit()
    before = log.stat().st_size
    for _ in range(50):
        writer.commit()
    assert log.stat().st_size == before
    writer.close()


def test_the_journal_stays_short_and_slow_tracks_share_a_row(path: Path) -> None:
    clock = Clock()
    writer = RunWriter.create(path, {}, clock=clock)
    fast, slow = writer.track("host.cpu"), writer.track("host.mem_used")
    for i in range(4000):
        writer.sample(fast, START + i * SECOND // 10, float(i))
        if i % 10 == 0:
            writer.sample(slow, START + i * SECOND // 10, float(i))
        clock.now += 0.1
        writer.commit()
    with sqlite3.connect(path) as db:
        rows, samples = db.execute("SELECT count(*), sum(n) FROM journal").fetchone()
        blocks = dict(db.execute("SELECT track, count(*) FROM block WHERE level = 0 GROUP BY track"))
    assert rows <= 301 and samples < 1000
    assert blocks == {fast: 13, slow: 1}
    with Run.open(path) as run:
        assert len(run.values(fast)[0]) == 4000 and len(run.values(slow)[0]) == 400
    writer.close()


def test_an_existing_file_is_kept(path: Path) -> None:
    write(path, [])
    before = path.read_bytes()
    with pytest.raises(RunError, match="exists already"):
        RunWriter.create(path, {})
    assert path.read_bytes() == before
    RunWriter.create(path, {"name": "new"}, overwrite=True).finish("finished", START)
    with Run.open(path) as run:
        assert run.meta["name"] == "new"


def test_only_runs_are_written_over(path: Path) -> None:
    path.write_text("my thesis")
    with pytest.raises(NotARunError):
        RunWriter.create(path, {}, overwrite=True)
    assert path.read_text() == "my thesis"


def test_a_run_being_recorded_is_not_written_over(path: Path) -> None:
    writer = RunWriter.create(path, {})
    with pytest.raises(RunError, match="being recorded"):
        RunWriter.create(path, {}, overwrite=True)
    writer.close()


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    missing, long = tmp_path / "no" / "a.stepscope", tmp_path / ("a" * 300)
    for place in (tmp_path, missing, long, Path("/proc/a.stepscope")):
        with pytest.raises(RunError) as caught:
            RunWriter.create(place, {})
        assert str(place) in caught.value.message and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_network_file_systems_have_no_wal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "file_system", lambda path: "nfs4")
    clock = Clock()
    writer = RunWriter.create(path, {}, clock=clock)
    track = writer.track("host.cpu")
    with Run.open(path) as run:
        for i in range(100):
            writer.sample(track, START + i * SECOND, float(i))
            clock.now += 1
            writer.commit()
            assert not path.with_name("a.stepscope-wal").exists()
            assert run.refresh()
            assert run.latest(track) == (START + i * SECOND, float(i))
        assert "nfs4" in run.meta["journal_note"]
        writer.finish("finished", START + 100 * SECOND)
        assert run.refresh() and run.state == "finished"
        assert len(run.values(track)[0]) == 100


def test_a_reader_in_the_way_only_delays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "file_system", lambda path: "nfs4")
    monkeypatch.setattr("profiler.run.files.BUSY_SECONDS", 0.0)
    clock = Clock()
    writer = RunWriter.create(path, {}, clock=clock)
    track = writer.track("host.cpu")
    reader = sqlite3.connect(path, isolation_level=None)
    for i in range(200):
        if i == 20:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM meta").fetchall()
        if i == 120:
            reader.execute("COMMIT")
        writer.sample(track, START + i, float(i))
        clock.now += 1
        writer.commit()
        assert writer.failed is None
    reader.close()
    writer.finish("finished", START)
    with Run.open(path) as run:
        assert run.values(track)[1].tolist() == [float(i) for i in range(200)]


def test_a_record_that_cannot_be_stored_does_not_end_the_recording(path: Path) -> None:
    writer = RunWriter.create(path, {"command": ["python", "caf\udce9.py"]}, now_ns=lambda: START + 5)
    writer.event(START, "mark", "info", "caf\udce9")
    writer.event(START, "mark", "info", None)  # type: ignore[arg-type]
    writer.event(1 << 70, "mark", "info", "far away")
    writer.event(START, "mark", "info", "after")
    writer.add_process(1, "target", command="caf\udce9")
    writer.finish("finished", START)
    assert writer.failed is None
    with Run.open(path) as run:
        texts = [event.text for event in run.events() if event.kind == "mark"]
        assert texts == ["caf\\udce9", "after"]
        rejected = [event.t_ns for event in run.events() if event.kind == "record_rejected"]
        assert rejected == [START + 5] * 2  # on the run's clock
        assert run.meta["command"] == ["python", "caf\udce9.py"]
        assert run.processes[0].command == "caf\\udce9"


@pytest.mark.parametrize("name", ["a b?c#d%41&mode=rw.stepscope", "ü\udce9.stepscope", "-o.stepscope"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    track = write(tmp_path / name, [(START, 1.0)])
    with Run.open(tmp_path / name) as run:
        assert run.latest(track) == (START, 1.0)
    assert [file.name for file in tmp_path.iterdir()] == [name]
