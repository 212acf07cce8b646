"""What is put into a run file, by sources in any thread, until it is written."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping
from math import isfinite
from typing import Any

from profiler.run.files import to_json
from profiler.run.pending import MOST_WAITING, Gap, Pending, lost
from profiler.run.rows import (
    DROP_OUTPUT,
    PUT_ATTACHMENT,
    PUT_DEVICE,
    PUT_EVENT,
    PUT_META,
    PUT_OUTPUT,
    PUT_PROCESS,
    PUT_TRACK,
)

LARGEST = 900_000_000  # bytes of one attachment, below what SQLite takes


class Intake:
    """Implements `profiler.model.Sink`; its methods may be called from any thread, and touch no disk.

    While `failed` says why nothing can be written, samples, output and attachments are left out.
    """

    def __init__(self) -> None:
        self.failed: str | None = None
        self._why = ""
        self._gap = Gap()
        self._on = True
        self._lock = threading.Lock()
        self._pending = Pending()
        self._devices: dict[str, int] = {}
        self._processes: dict[tuple[int, int | None], int] = {}
        self._process_rows: dict[int, list[Any]] = {}  # columns; properties as a dict
        self._tracks: dict[int | None, dict[tuple[Any, ...], int]] = {}  # by process
        self._last_track = 0

    def set_meta(self, key: str, value: Any) -> None:
        """A fact about the run as a whole; `value` is anything JSON has."""
        self._put(PUT_META, (key, to_json(value)), described=True)

    def add_device(self, uuid: str, index: int, name: str, *, kind: str = "cuda",
                   memory_total: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        """The id of a device; of the known one when there is one with this UUID."""
        with self._lock:
            if (known := self._devices.get(uuid)) is not None:
                return known
            number = self._devices[uuid] = len(self._devices) + 1
            row = (number, uuid, index, name, kind, memory_total, to_json(dict(properties or {})))
            self._describe(PUT_DEVICE, row)
            return number

    def add_process(self, pid: int, role: str, *, command: str = "", rank: int | None = None,
                    started_ns: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        """The id of a process. A known one (same pid and start) learns what was not known of it yet."""
        with self._lock:
            number = self._processes.get((pid, started_ns))
            if number is None:
                number = self._processes[pid, started_ns] = len(self._processes) + 1
                row = self._process_rows[number] = [number, pid, role, command, rank, started_ns, {}]
            else:
                row = self._process_rows[number]
                row[3:5] = row[3] or command, rank if row[4] is None else row[4]
            row[6].update(properties or {})
            self._describe(PUT_PROCESS, (*row[:6], to_json(row[6])))
            return number

    def update_process(self, process: int, properties: Mapping[str, Any]) -> None:
        """Add to the properties of a process, by its id."""
        with self._lock:
            row = self._process_rows[process]
            row[6].update(properties)
            self._describe(PUT_PROCESS, (*row[:6], to_json(row[6])))

    def end_process(self, process: int) -> None:
        """It is gone: what its tracks need in memory is let go of. In a day thousands of processes end."""
        with self._lock:
            self._pending.ended += self._tracks.pop(process, {}).values()

    def track(self, metric: str, *, device: int | None = None, process: int | None = None,
              index: int | None = None, properties: Mapping[str, Any] | None = None) -> int:
        """The id of a track; of the known one when there is one of the same metric and owner."""
        with self._lock:
            known = self._tracks.setdefault(process, {})
            number = known.get((metric, device, index))
            if number is None:
                number = known[metric, device, index] = self._last_track = self._last_track + 1
                self._describe(PUT_TRACK, (number, metric, device, process, index,
                                           to_json(dict(properties or {}))))
            return number

    def sample(self, track: int, t_ns: int, value: float) -> None:
        """A value at a time, kept to whole microseconds. One that is not finite is missing."""
        if isfinite(value) and self._on:
            with self._lock:
                if self.failed is None:
                    self._pending.samples.append((track, t_ns, value))
                else:
                    self._gap.add(t_ns)

    def event(self, t_ns: int, kind: str, severity: str, text: str, *, device: int | None = None,
              process: int | None = None, data: Mapping[str, Any] | None = None) -> None:
        """Something worth telling, at a time."""
        self._put(PUT_EVENT, (t_ns, kind, severity, text, device, process, to_json(dict(data or {}))))

    def attach(self, t_ns: int, kind: str, name: str, data: bytes, *, process: int | None = None,
               properties: Mapping[str, Any] | None = None) -> None:
        """Keep a file. It is compressed here, in the caller's thread."""
        gzipped = data[:2] == b"\x1f\x8b"
        stored = data if gzipped else zlib.compress(data, 3)
        if len(stored) > LARGEST:
            self.event(t_ns, "attachment_too_large", "warning", f"{name} is too large to be kept in the run",
                       process=process, data={"bytes": len(stored)})
            return
        self._put(PUT_ATTACHMENT, (t_ns, kind, name, process, to_json(dict(properties or {})), len(data),
                                    len(stored), "none" if gzipped else "zlib", stored))

    def output(self, t_ns: int, data: bytes) -> None:
        """A piece of what the target printed."""
        self._put(PUT_OUTPUT, (t_ns, bytes(data)))

    def drop_output(self, first: int, last: int) -> None:
        """Drop pieces of output again, by number from 1. The newest must stay: numbers go on from it."""
        self._put(DROP_OUTPUT, (first, last))

    def _put(self, statement: str, row: tuple[Any, ...], described: bool = False) -> None:
        with self._lock:
            self._describe(statement, row, described)

    def _describe(self, statement: str, row: tuple[Any, ...], described: bool = True) -> None:
        """For callers that hold the lock."""
        if not self._on:
            return
        pending = self._pending
        if self.failed is not None:
            if statement is PUT_META:
                pending.replace_meta(row[0])
            elif statement is PUT_ATTACHMENT:
                statement, row = lost((statement, row), self._why)
            elif statement is PUT_OUTPUT:
                return
            self._on = len(pending.rows) < MOST_WAITING
        pending.rows.append((statement, row))
        pending.described |= described
