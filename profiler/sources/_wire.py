"""What the process that reads the GPUs says to the recorder, over a pipe: written here, and taken here.

A frame is its length (4 bytes), a letter and a body. `M`: a list as JSON, such as
["track", id, ...], with ids of the writer's own. `S`: n samples as three columns, n track
ids (4 bytes each), n times (8) and n values (8). What defines an id comes before its use.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, NoReturn

from profiler.model import Sink
from profiler.sources._checked import BadRecord, count, mapping, optional_count, plain, text
from profiler.visible import also_named

LARGEST = 4 << 20  # bytes of one frame
MOST_SAMPLES = 50_000  # in one frame
MOST_TRACKS = 100_000  # of one writer
MOST_DEVICES, MOST_EVENTS = 1000, 10_000  # of all there are, one after the other
BATCH_NS = 40_000_000  # at high rates several ticks go in one write
_HEAD = struct.Struct("<Ic")
_SAMPLE = 20  # bytes
# Kinds of events about a state, which holds until another is told.
STATES = ("field_absent", "implausible", "device_absent", "device_lost", "source_off")


class PipeSink:
    """The sink of sources whose recorder is at the other end of a pipe.

    Records are kept until `flush`, which one thread does at a time and which waits while
    the pipe is full: the sources then tick late, and nothing piles up here.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._messages: list[list[Any]] = []
        self._samples: list[tuple[int, int, float]] = []
        self._devices: dict[str, int] = {}
        self._tracks: dict[tuple[Any, ...], int] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._flushed_ns = 0

    def set_meta(self, key: str, value: Any) -> None:
        self.say(["meta", key, value])

    def add_device(self, uuid: str, index: int, name: str, *, kind: str = "cuda",
                   memory_total: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        with self._lock:
            if (known := self._devices.get(uuid)) is not None:
                return known
            number = self._devices[uuid] = len(self._devices) + 1
            self.say(["device", number, uuid, index, name, kind, memory_total, dict(properties or {})])
            return number

    def track(self, metric: str, *, device: int | None = None, process: int | None = None,
              index: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        key = (metric, device, process, index)
        with self._lock:
            if (known := self._tracks.get(key)) is not None:
                return known
            number = self._tracks[key] = len(self._tracks) + 1
            self.say(["track", number, metric, device, index, dict(properties or {})])
            return number

    def sample(self, track: int, t_ns: int, value: float) -> None:
        if isfinite(value):
            self._samples.append((track, t_ns, value))

    def event(self, t_ns: int, kind: str, severity: str, text: str, *, device: int | None = None,
              process: int | None = None, data: Mapping[str, Any] | None = None) -> None:
        self.say(["event", t_ns, kind, severity, text, device, dict(data or {})])

    def add_process(self, pid: int, role: str, *, command: str = "", rank: int | None = None,
                    started_ns: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        _refuse()

    def update_process(self, process: int, properties: Mapping[str, Any]) -> None:
        _refuse()

    def end_process(self, process: int) -> None:
        _refuse()

    def attach(self, t_ns: int, kind: str, name: str, data: bytes, *, process: int | None = None,
               properties: Mapping[str, Any] | None = None) -> None:
        _refuse()

    def output(self, t_ns: int, data: bytes) -> None:
        _refuse()

    def say(self, message: list[Any]) -> None:
        """Put any message into the stream."""
        self._messages.append(message)

    def tick_over(self) -> None:
        """Send what there is, unless that was done a moment ago."""
        if time.monotonic_ns() - self._flushed_ns >= BATCH_NS:
            self.flush()

    def flush(self) -> None:
        """Send everything, in one write if the pipe takes it. OSError when nobody reads any more."""
        with self._writing:
            # Samples first: what their tracks are is then among the messages taken after them. Both lists
            # are cut, not replaced: another thread may be about to append to the one that it has.
            samples = _cut(self._samples)
            messages = _cut(self._messages)
            data = bytearray()
            for message in messages:
                data += _frame(b"M", json.dumps(message).encode())
            for at in range(0, len(samples), MOST_SAMPLES):
                data += _frame(b"S", pack(samples[at:at + MOST_SAMPLES]))
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view):]
            self._flushed_ns = time.monotonic_ns()


def _refuse() -> NoReturn:
    raise NotImplementedError("sources of GPUs tell of devices, not of processes or files")


def _cut(items: list[Any]) -> list[Any]:
    taken = items[:]
    del items[:len(taken)]
    return taken


def _frame(letter: bytes, body: bytes) -> bytes:
    return _HEAD.pack(len(body), letter) + body


def pack(samples: Sequence[tuple[int, int, float]]) -> bytes:
    """The body of a frame of samples (track, t_ns, value)."""
    tracks, times, values = zip(*samples, strict=True)
    return array("I", tracks).tobytes() + array("q", times).tobytes() + array("d", values).tobytes()


class Taker:
    """Puts what comes through the pipe into a sink. Nothing in it is trusted to be as it should.

    `devices` maps UUIDs to ids of the sink. `other` gets the messages that are not for a sink.
    """

    def __init__(self, sink: Sink, devices: dict[str, int], other: Callable[[list[Any]], None]) -> None:
        self._sink = sink
        self._devices = devices
        self._other = other
        self._pending = bytearray()
        self._device_ids: dict[int, int] = {}
        self._track_ids: list[int] = [0]  # by the writer's, which count from 1
        self._events = 0
        self._told: dict[tuple[int | None, str], tuple[str, str]] = {}
        self._earlier: dict[tuple[int | None, str], tuple[str, str]] = {}

    def begin(self) -> None:
        """The writer is another one: its ids are new, and what was told of a state holds until it changes."""
        self._pending.clear()
        self._device_ids.clear()
        del self._track_ids[1:]
        self._earlier = dict(self._told)

    @property
    def has_devices(self) -> bool:
        """Whether this writer has told of one."""
        return bool(self._device_ids)

    def feed(self, data: bytes) -> None:
        """Take what was read. BadRecord when the writer has gone mad; it is not to be read any further."""
        self._pending += data
        at = 0
        while len(self._pending) - at >= _HEAD.size:
            size, letter = _HEAD.unpack_from(self._pending, at)
            if size > LARGEST:
                raise BadRecord
            begin = at + _HEAD.size
            if len(self._pending) - begin < size:
                break
            at = begin + size
            self._frame(letter, bytes(self._pending[begin:at]))
        del self._pending[:at]

    def _frame(self, letter: bytes, body: bytes) -> None:
        if letter == b"S":
            self._samples(body)
            return
        try:
            message = json.loads(body)
            getattr(self, f"_take_{message[0]}", self._pass_on)(message)
        except (ValueError, TypeError, IndexError, KeyError, RecursionError):
            raise BadRecord from None

    def _samples(self, body: bytes) -> None:
        n, rest = divmod(len(body), _SAMPLE)
        if rest:
            raise BadRecord
        tracks, times = array("I", body[:4 * n]), array("q", body[4 * n:12 * n])
        values = array("d", body[12 * n:])
        ids, sample = self._track_ids, self._sink.sample
        try:
            for track, t_ns, value in zip(tracks, times, values, strict=True):
                sample(ids[track], t_ns, value)
        except IndexError:
            raise BadRecord from None

    def _pass_on(self, message: list[Any]) -> None:
        self._other(message)

    def _take_meta(self, message: list[Any]) -> None:
        self._sink.set_meta(text(message[1], 100), plain(message[2]))

    def _take_device(self, message: list[Any]) -> None:
        uuid = text(message[2], 200)
        if uuid not in self._devices and len(self._devices) >= MOST_DEVICES:
            raise BadRecord
        properties = mapping(plain(mapping(message[7])))
        self._devices[uuid] = self._device_ids[count(message[1])] = self._sink.add_device(
            uuid, count(message[3]), text(message[4], 200), kind=text(message[5], 20),
            memory_total=optional_count(message[6]), properties=properties)
        self._devices |= dict.fromkeys(also_named(uuid, properties), self._devices[uuid])

    def _take_track(self, message: list[Any]) -> None:
        if message[1] != len(self._track_ids) or message[1] > MOST_TRACKS:
            raise BadRecord
        self._track_ids.append(self._sink.track(
            text(message[2], 100), device=self._device(message[3]), index=optional_count(message[4]),
            properties=mapping(plain(mapping(message[5])))))

    def _take_event(self, message: list[Any]) -> None:
        t_ns, kind, severity, said = message[1], text(message[2], 50), text(message[3], 20), text(message[4])
        device, data = self._device(message[5]), mapping(plain(mapping(message[6])))
        if type(t_ns) is not int or not 0 <= t_ns < 1 << 63:
            raise BadRecord
        if len(self._told) >= MOST_EVENTS:
            self._told.clear()
        about = (device, str(data.get("field") or data.get("source") or said))
        earlier, self._told[about] = self._earlier.pop(about, None), (kind, said)
        if kind in STATES and earlier == (kind, said):
            return
        self._events += 1
        if self._events <= MOST_EVENTS:
            self._sink.event(t_ns, kind, severity, said, device=device, data=data)

    def _device(self, number: Any) -> int | None:
        return None if number is None else self._device_ids[number]
