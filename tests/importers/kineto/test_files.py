"""What a trace may be wrapped in, several of them, and what is bounded (T07, T17)."""

from __future__ import annotations

import gzip
import io
import tarfile
import threading
from pathlib import Path

import pytest

from profiler.errors import Cancelled, TraceError
from profiler.importers import kineto
from profiler.importers.kineto import files, split
from profiler.importers.kineto import source as sources
from profiler.importers.kineto.source import Blocks, Source
from tests.traces import Timeline


def content(rank: int = 0, events: int = 3) -> bytes:
    line = Timeline(rank=rank, world_size=4)
    for i in range(events):
        line.op(f"aten::op{i % 50}", 10_000 * i, 10_000 * i + 5_000, external=i)
    return line.bytes()


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def write(tmp_path: Path, name: str, data: bytes) -> Path:
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.pt.trace.json", "a"])
@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_layers_of_gzip_whatever_the_name(tmp_path: Path, name: str, layers: int) -> None:
    data = content()
    for _ in range(layers):
        data = gzip.compress(data)
    path = write(tmp_path, name, data)
    [trace] = kineto.load(path)
    assert (len(trace.host), trace.source, trace.notes) == (3, name, ())
    assert kineto.sniff(path)


def test_too_many_layers(tmp_path: Path) -> None:
    data = content()
    for _ in range(files.LAYERS + 1):
        data = gzip.compress(data)
    path = write(tmp_path, "a.json.gz", data)
    with pytest.raises(TraceError, match="more than 4 times"):
        kineto.load(path)
    assert not kineto.sniff(path)


@pytest.mark.parametrize("tail, note", [(b"", ""), (b"\0" * 700, ""), (b"not gzip", "no gzip")])
def test_members_of_gzip_one_after_the_other(tmp_path: Path, tail: bytes, note: str) -> None:
    data, size = content(events=40), 700
    parts = [gzip.compress(data[i:i + size]) for i in range(0, len(data), size)]
    [trace] = kineto.load(write(tmp_path, "a.json.gz", b"".join(parts) + tail))
    assert len(trace.host) == 40 and note in " ".join(trace.notes) and bool(trace.notes) == bool(note)


def test_a_tar_is_one_trace_a_member_by_rank(tmp_path: Path) -> None:
    members = {"run/rank10.json": content(10), "run/b.json.gz": gzip.compress(content(2)),
               "run/.DS_Store": b"x", "run/a.json": content(1)}
    for name, data in (("a.tar", packed(members)), ("a.tar.gz", gzip.compress(packed(members)))):
        path = write(tmp_path, name, data)
        traces = kineto.load(path)
        assert [t.rank for t in traces] == [1, 2, 10]
        members_by_rank = ("a.json", "b.json.gz", "rank10.json")
        assert [t.source for t in traces] == [f"{name}:run/{m}" for m in members_by_rank]
        assert all(len(t.host) == 3 and t.world_size == 4 and not t.notes for t in traces)
        assert kineto.sniff(path)


def test_several_files_and_one_that_is_none(tmp_path: Path) -> None:
    paths = [write(tmp_path, "b.json", content(1)), write(tmp_path, "notes.txt", b"hello"),
             write(tmp_path, "a.json", content(0)), tmp_path / "missing.json"]
    traces = kineto.load(paths)
    assert [t.rank for t in traces] == [0, 1]
    assert "notes.txt" in traces[0].notes[0] and "missing.json" in traces[0].notes[1]
    assert traces[1].notes == ()
    members = {"a.json": content(0), "readme.md": b"# hello"}
    [trace] = kineto.load(write(tmp_path, "a.tar", packed(members)))
    assert "readme.md" in trace.notes[0]


def test_a_cut_tar_gives_the_members_before_the_cut(tmp_path: Path) -> None:
    data = packed({"a.json": content(0), "b.json": content(1, 3000)})
    traces = kineto.load(write(tmp_path, "a.tar", data[:len(data) // 2]))
    assert [t.rank for t in traces] == [0, 1]
    assert traces[0].notes == () and len(traces[0].host) == 3
    assert len(traces[1].host) < 3000 and traces[1].losses.truncated_at is not None


def test_clocks_of_ranks_are_kept_apart(tmp_path: Path) -> None:
    """Two copies with bases 11.56 s apart: nothing is aligned here, the bases say it."""
    one, two = Timeline(rank=0).op("x", 0, 1_000), Timeline(rank=1).op("x", 11_560_000_000, 11_560_001_000)
    a, b = kineto.load([one.save(tmp_path / "a.json"), two.save(tmp_path / "b.json")])
    assert b.base_ns - a.base_ns == 11_560_000_000
    assert a.host.start.tolist() == b.host.start.tolist() == [0] and a.absolute and b.absolute


def test_progress_and_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 1 << 14)
    path = write(tmp_path, "a.json", content(events=20_000))
    told: list[float] = []
    [trace] = kineto.load(path, progress=told.append, cancel=lambda: False)
    assert told == sorted(told) and 0 < told[0] < 1 and told[-1] == 1 and len(trace.host) == 20_000
    told.clear()
    with pytest.raises(Cancelled):
        kineto.load(path, progress=told.append, cancel=lambda: bool(told) and told[-1] > 0.3)
    assert 0.3 < told[-1] < 1
    assert not [t for t in threading.enumerate() if t.name == "trace reader"]


def test_what_is_no_event_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "HOPELESS", 1000)
    monkeypatch.setattr(sources, "BLOCK", 1 << 12)
    with pytest.raises(TraceError, match="no events that can be read"):
        kineto.load(write(tmp_path, "a.json", b"[" + b"{}," * 100_000))
    later = b"[" + b"{}," * 900 + content()[content().index(b'{"ph"'):]
    [trace] = kineto.load(write(tmp_path, "a.json", later))
    assert len(trace.host) == 3 and trace.losses.invalid == 900


def test_a_bomb_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that unpacks to far more than its size, inside the list and before it."""
    monkeypatch.setattr(sources, "FREE", 1 << 17)
    for data in (b"[" + b" " * 4_000_000, b"[" + b"{}," * 200_000, b" " * 4_000_000):
        path = write(tmp_path, "bomb.json.gz", gzip.compress(data))
        with pytest.raises(TraceError, match="more than 300 times"):
            kineto.load(path)
    [trace] = kineto.load(write(tmp_path, "fine.json.gz", gzip.compress(content(events=20_000))))
    assert len(trace.host) == 20_000


@pytest.mark.parametrize("data", [b"", b"hello", b"{}", b"[1]", b"SQLite format 3\0", gzip.compress(b"hello"),
                                  packed({"a.txt": b"hello"}), gzip.compress(b"x" * 1000)[:20]],
                         ids=["empty", "text", "object", "array", "sqlite", "gz", "tar", "cut gz"])
def test_what_is_no_trace_does_not_look_like_one(tmp_path: Path, data: bytes) -> None:
    assert not kineto.sniff(write(tmp_path, "a.json", data))


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = write(tmp_path, "a.json", content(0)), write(tmp_path, "b.json", content(1))
    read = sources._read

    def failing(file: io.FileIO, source: Source) -> Blocks:
        if source.name == "b.json":
            raise OSError(5, "Input/output error")
        yield from read(file, source)

    monkeypatch.setattr(sources, "_read", failing)
    with pytest.raises(TraceError, match="Input/output error"):
        kineto.load(bad)
    [trace] = kineto.load([good, bad])
    assert "Input/output error" in trace.notes[0] and not kineto.sniff(bad)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path, Path("a\0b"), Path("x" * 5000)):
        assert not kineto.sniff(path)
        with pytest.raises(TraceError, match="cannot be read"):
            kineto.load(path)
    with pytest.raises(TraceError, match="No trace"):
        kineto.load([])
