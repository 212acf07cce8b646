"""What the process that reads the GPUs says: all of it arrives, and nothing else does harm."""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from profiler.sources import _wire
from profiler.sources._checked import BadRecord
from profiler.sources._wire import PipeSink, Taker, pack
from tests.fakes.sink import ListSink

T = 1_790_000_000_000_000_000  # ns since the epoch


class Pipe:
    """A writer, what it wrote, and a taker of that."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.sink, self.devices, self.other = ListSink(), {}, []
        self.taker = Taker(self.sink, self.devices, self.other.append)

    def say(self, fill: Callable[[PipeSink], None], piece: int = 1 << 20) -> None:
        """One life of a writer, its bytes in pieces of that size."""
        writer = PipeSink(self.write)
        self.taker.begin()
        fill(writer)
        reader = threading.Thread(target=self._feed, args=(piece,))
        reader.start()
        writer.flush()
        os.close(self.write)
        reader.join()
        os.close(self.read)
        self.read, self.write = os.pipe()

    def _feed(self, piece: int) -> None:
        while data := os.read(self.read, piece):
            self.taker.feed(data)

    def close(self) -> None:
        os.close(self.read)
        os.close(self.write)


@pytest.fixture
def pipe() -> Any:
    one = Pipe()
    yield one
    one.close()


def story(writer: PipeSink) -> None:
    writer.set_meta("gpu", {"state": "ok", "driver": "580", "bad": float("nan")})
    device = writer.add_device("GPU-b", 1, "Card \ud800", memory_total=80 << 30, properties={"mig": False})
    assert writer.add_device("GPU-b", 5, "again") == device
    track = writer.track("gpu.power", device=device, properties={"method": "m"})
    assert writer.track("gpu.power", device=device) == track
    other = writer.track("gpu.process_mem", device=device, index=77)
    writer.sample(track, T, 1.5)
    writer.sample(other, T + 1, 1 << 60)
    writer.sample(track, T + 2, float("nan"))  # is missing
    writer.event(T, "xid", "error", "XID 79", device=device, data={"xid": 79})
    writer.say(["ticks", 1])


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_all_arrives_whatever_the_pieces(pipe: Pipe, piece: int) -> None:
    pipe.sink.add_device("GPU-a", 0, "Earlier")
    pipe.say(story, piece)
    sink = pipe.sink
    assert sink.meta["gpu"] == {"state": "ok", "driver": "580", "bad": None}
    assert [(d.id, d.uuid, d.index, d.name, d.memory_total) for d in sink.devices[1:]] == [
        (2, "GPU-b", 1, "Card ?", 80 << 30)]
    assert pipe.devices == {"GPU-b": 2}
    assert [(t.metric, t.device, t.index, t.properties) for t in sink.tracks] == [
        ("gpu.power", 2, None, {"method": "m"}), ("gpu.process_mem", 2, 77, {})]
    assert sink.samples == [(1, T, 1.5), (2, T + 1, float(1 << 60))]
    [event] = sink.events
    assert (event.t_ns, event.kind, event.severity, event.device, event.data) == (
        T, "xid", "error", 2, {"xid": 79})
    assert pipe.other == [["ticks", 1]]


def test_more_samples_than_a_frame_holds(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_wire, "MOST_SAMPLES", 100)

    def fill(writer: PipeSink) -> None:
        track = writer.track("gpu.util", device=writer.add_device("GPU", 0, "Card"))
        for at in range(10_050):
            writer.sample(track, T + at, at)

    pipe.say(fill)
    assert [(t - T, value) for _, t, value in pipe.sink.samples] == [(at, at) for at in range(10_050)]


def test_no_sample_of_several_threads_is_lost(pipe: Pipe) -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        write_from_several_threads(pipe)
    finally:
        sys.setswitchinterval(usual)
    assert sorted(value for _, _, value in pipe.sink.samples) == list(range(20_000))


def write_from_several_threads(pipe: Pipe) -> None:
    taken: list[bytes] = []
    reader = threading.Thread(target=lambda: taken.extend(iter(lambda: os.read(pipe.read, 1 << 16), b"")))
    reader.start()
    writer = PipeSink(pipe.write)
    device = writer.add_device("GPU", 0, "Card")

    def work(first: int) -> None:
        for at in range(first, first + 5000):
            writer.sample(writer.track("gpu.process_mem", device=device, index=at // 5), T + at, at)
            if at % 10 == 0:
                writer.flush()

    threads = [threading.Thread(target=work, args=(k * 5000,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    os.close(pipe.write)
    reader.join()
    pipe.write = os.open(os.devnull, os.O_RDWR)
    pipe.taker.feed(b"".join(taken))


def test_tracks_go_on_in_another_life_and_states_are_told_once(pipe: Pipe) -> None:
    def life(uuids: tuple[str, ...], *texts: str) -> Callable[[PipeSink], None]:
        def fill(writer: PipeSink) -> None:
            for index, uuid in enumerate(uuids):
                device = writer.add_device(uuid, index, "Card")
                writer.sample(writer.track("gpu.util", device=device), T, ord(uuid))
                for text in texts:
                    writer.event(T, "field_absent" if "not" in text else "field_back", "info", text,
                                 device=device, data={"field": "power"})

        return fill

    pipe.say(life(("a", "b"), "not read"))
    pipe.say(life(("b", "a"), "not read"))  # holds still
    pipe.say(life(("a",), "not read", "read again", "not read"))  # holds, and changes twice
    pipe.say(life(("a",), "not for another reason"))
    assert len(pipe.sink.devices) == len(pipe.sink.tracks) == 2
    assert [(track, value) for track, _, value in pipe.sink.samples] == [
        (1, 97), (2, 98), (2, 98), (1, 97), (1, 97), (1, 97)]
    assert [(event.device, event.text) for event in pipe.sink.events] == [
        (1, "not read"), (2, "not read"), (1, "read again"), (1, "not read"), (1, "not for another reason")]


def message(*parts: Any) -> bytes:
    return _wire._frame(b"M", json.dumps(parts).encode())


DEVICE = message("device", 1, "GPU", 0, "Card", "cuda", None, {})
MAD = [
    struct.pack("<Ic", 1 << 31, b"M"),
    _wire._frame(b"M", b"no JSON"),
    _wire._frame(b"M", b"[" * 100_000),
    _wire._frame(b"M", b"{}"),
    _wire._frame(b"M", b"[[]]") + message(),
    message("device", -1, "GPU", 0, "Card", "cuda", None, {}),
    message("device", 1, None, 0, "Card", "cuda", None, {}),
    message("track", 1, "gpu.util", 9, None, {}),
    DEVICE + message("track", 5, "gpu.util", 1, None, {}),
    DEVICE + message("track", 1, "gpu.util", 1, None, []),
    _wire._frame(b"S", pack([(3, T, 1.0)])),
    _wire._frame(b"S", b"\0" * 21),
    message("event", "now", "kind", "info", "text", None, {}),
    message("event", 1 << 70, "kind", "info", "text", None, {}),
    b"".join(message("device", k, f"GPU-{k}", k, "Card", "cuda", None, {}) for k in range(1, 1010)),
]  # fmt: skip


@pytest.mark.parametrize("data", MAD, ids=range(len(MAD)))
def test_a_writer_that_has_gone_mad_is_refused(data: bytes) -> None:
    taker = Taker(ListSink(), {}, lambda _: None)
    with pytest.raises(BadRecord):
        taker.feed(data)


def test_events_and_what_they_carry_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_wire, "MOST_EVENTS", 50)
    sink = ListSink()
    taker = Taker(sink, {}, lambda _: None)
    for turn in range(60):
        data = {"a": ["b"] * 300}
        taker.feed(message("event", T, "xid", "info", f"{turn} " + "x" * 1500, None, data))
    assert len(sink.events) == 50 and len(taker._told) <= 50
    assert len(sink.events[0].text) == 1000 and len(sink.events[0].data["a"]) == 200


def test_tracks_are_bounded_for_each_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_wire, "MOST_TRACKS", 50)
    taker = Taker(ListSink(), {}, lambda _: None)
    tracks = [message("track", k, "gpu.process_mem", 1, k, {}) for k in range(1, 52)]
    for _ in range(3):  # a reader that crashes every minute for a day has many successors
        taker.begin()
        taker.feed(DEVICE + b"".join(tracks[:50]))
    with pytest.raises(BadRecord):
        taker.feed(tracks[50])
