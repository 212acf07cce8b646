"""A sink that keeps what it is given in plain lists."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from profiler.model import Attachment, Device, Event, Process, Track


class ListSink:
    """Fulfils profiler.model.Sink. `samples` holds (track, t_ns, value) in the order of arrival."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.devices: list[Device] = []
        self.processes: list[Process] = []
        self.tracks: list[Track] = []
        self.ended: list[int] = []  # processes
        self.samples: list[tuple[int, int, float]] = []
        self.events: list[Event] = []
        self.attachments: list[tuple[Attachment, bytes]] = []
        self.outputs: list[tuple[int, bytes]] = []
        self._lock = threading.Lock()

    def set_meta(self, key: str, value: Any) -> None:
        self.meta[key] = value

    def add_device(
        self,
        uuid: str,
        index: int,
        name: str,
        *,
        kind: str = "cuda",
        memory_total: int | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> int:
        for device in self.devices:
            if device.uuid == uuid:
                return device.id
        self.devices.append(
            Device(len(self.devices) + 1, uuid, index, name, kind, memory_total, properties or {})
        )
        return len(self.devices)

    def add_process(
        self,
        pid: int,
        role: str,
        *,
        command: str = "",
        rank: int | None = None,
        started_ns: int | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> int:
        key = len(self.processes) + 1
        self.processes.append(Process(key, pid, role, command, rank, started_ns, dict(properties or {})))
        return key

    def update_process(self, process: int, properties: Mapping[str, Any]) -> None:
        known = self.processes[process - 1]
        self.processes[process - 1] = replace(known, properties={**known.properties, **properties})

    def end_process(self, process: int) -> None:
        self.ended.append(process)

    def track(
        self,
        metric: str,
        *,
        device: int | None = None,
        process: int | None = None,
        index: int | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> int:
        with self._lock:
            for track in self.tracks:
                if (track.metric, track.device, track.process, track.index) == (
                    metric,
                    device,
                    process,
                    index,
                ):
                    return track.id
            self.tracks.append(Track(len(self.tracks) + 1, metric, device, process, index, properties or {}))
            return len(self.tracks)

    def sample(self, track: int, t_ns: int, value: float) -> None:
        self.samples.append((track, t_ns, value))

    def event(
        self,
        t_ns: int,
        kind: str,
        severity: str,
        text: str,
        *,
        device: int | None = None,
        process: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self.events.append(
            Event(len(self.events) + 1, t_ns, kind, severity, text, device, process, data or {})
        )

    def attach(
        self,
        t_ns: int,
        kind: str,
        name: str,
        data: bytes,
        *,
        process: int | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        attachment = Attachment(
            len(self.attachments) + 1, t_ns, kind, name, process, len(data), properties or {}
        )
        self.attachments.append((attachment, data))

    def output(self, t_ns: int, data: bytes) -> None:
        self.outputs.append((t_ns, data))

    def values(
        self, metric: str, *, device: int | None = None, process: int | None = None, index: int | None = None
    ) -> list[tuple[int, float]]:
        """(t_ns, value) of every sample of the metric; of one device, process or index where given."""
        wanted = {
            t.id
            for t in self.tracks
            if t.metric == metric
            and device in (None, t.device)
            and process in (None, t.process)
            and index in (None, t.index)
        }
        return [(t_ns, value) for track, t_ns, value in self.samples if track in wanted]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]
