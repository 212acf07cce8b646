"""What probes wrote: steps, device times, memory, events and profiler traces."""

from __future__ import annotations

import gzip
import json
import stat
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._checked import BadRecord, mapping, optional_count, plain, text
from profiler.sources._probed import ProbedProcess, Times
from profiler.sources._segments import Segments, open_regular
from profiler.sources._standstill import Standstills
from profiler.sources._traces import AT_ONCE, Beside
from profiler.sources.tree import TargetTree

MAX_PROCESSES, MAX_EVER = 1024, 4000  # that send: at a time, and in one run, which is refused with 4097
MAX_TOLD = 20  # of them whose damage is told
LOOK_NS = 1_000_000_000  # between looks for loops that stand still
MAX_TRACE = 512 << 20  # bytes of a trace as written
MAX_TRACE_STORED = 128 << 20  # bytes of a trace as stored: a commit of it takes most of a second
MAX_TRACES_STORED = 2 << 30  # of all: a day with a window a minute would fill a disk


class _Refused(Exception):
    """A process more than can be kept."""


class SpoolSource:
    """Reads the files of a spool directory as they grow, and deletes what it has read.

    `devices` maps the UUID of a device to its id in the run; it may fill later. A line
    that cannot be used is counted and left out, whatever it holds.
    """

    name = "spool"
    interval_ns: int | None = 200_000_000

    def __init__(self, directory: Path, target: TargetTree | None = None,
                 devices: Mapping[str, int] | None = None) -> None:
        self._directory = directory
        self._target = target
        self._devices: Mapping[str, int] = {} if devices is None else devices
        self._segments = Segments(directory)
        self._processes: dict[int, ProbedProcess] = {}
        self._damaged: dict[int, int] = {}
        self._told: set[tuple[str, int]] = set()
        self._dropped_stored: dict[int, int] = {}
        self._times: Times | None = None
        self._standstills = Standstills(target.has if target is not None else lambda pid: True)
        self._looked_ns = 0
        self.urgent: deque[str] = deque(maxlen=5)  # for the user to read now; whoever tells it takes it
        self._large = Beside()
        self._stored = 0  # bytes of traces

    @property
    def steps_seen(self) -> int:
        """Training steps of the process that has made most of them; all its steps where none trains."""
        return max((p.steps for p in self._processes.values()), default=0)

    @property
    def trained(self) -> bool:
        """Whether any process has run a backward or an optimizer."""
        return any(p.trained for p in self._processes.values())

    @property
    def processes(self) -> list[ProbedProcess]:
        """Those that have sent anything. May be asked from another thread."""
        return list(self._processes.values())

    def failures(self, now_ns: int) -> list[str]:
        """What went wrong in the loops, for the end: workers that died, steps that no longer came."""
        processes = self.processes
        return [*(text for process in processes for text in process.failures),
                *self._standstills.standing(processes, now_ns)]

    def open(self, sink: Sink, clock: Clock) -> None:
        self._times = Times(clock.from_monotonic, time.monotonic_ns)

    def read(self, sink: Sink, clock: Clock) -> None:
        for pid, line in self._segments.lines():
            try:
                self._take(pid, line, sink, clock)
            except _Refused:
                self._tell_refused(sink, clock)
            except BadRecord:
                self._damaged[pid] = self._damaged.get(pid, 0) + 1
        for pid in self._damaged.keys() | self._segments.torn.keys():
            self._tell_damage(pid, sink, clock)
        for process in self._processes.values():
            self._tell_dropped(process, sink, clock)
        self._let_go(sink)
        now = time.monotonic_ns()
        if now - self._looked_ns >= LOOK_NS:
            self._looked_ns = now
            self.urgent += self._standstills.tick(self.processes, sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        """Read what is left, and note how much of it could not be used."""
        self.read(sink, clock)
        self._large.end()
        for pid in self._damaged.keys() | self._segments.torn.keys():
            if pid in self._processes:
                sink.update_process(self._processes[pid].process, {"damaged_records": self._damage(pid)})

    def _take(self, pid: int, line: bytes, sink: Sink, clock: Clock) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadRecord from error
        if not isinstance(record, list) or not record or not isinstance(record[0], str):
            raise BadRecord
        process = self._of(pid, sink, clock)
        if record[0] == "trace":
            self._trace(process, record, sink, clock)
        else:
            process.take(record[0], record)
        if record[0] == "bye":
            self._segments.over()

    def _let_go(self, sink: Sink) -> None:
        """Tell which processes are gone. The target itself may still get values of others' measuring."""
        for pid in self._segments.gone:
            known = self._processes.get(pid)
            if known is not None and (self._target is None or known.process != self._target.process):
                sink.end_process(known.process)
        self._segments.gone.clear()

    def _of(self, pid: int, sink: Sink, clock: Clock) -> ProbedProcess:
        if pid not in self._processes:
            if len(self._processes) >= MAX_PROCESSES and not self._room():
                raise _Refused
            if self._times is None:
                self.open(sink, clock)
            assert self._times is not None
            self._processes[pid] = ProbedProcess(pid, sink, self._times, self._target, self._devices)
        return self._processes[pid]

    def _room(self) -> bool:
        """Whether one more process can be kept: one that has said that it ends is hardly any."""
        sending = sum(not process.ended for process in self._processes.values())
        return sending < MAX_PROCESSES and len(self._processes) < MAX_EVER

    def _damage(self, pid: int) -> int:
        return self._damaged.get(pid, 0) + self._segments.torn.get(pid, 0)

    def _tell_refused(self, sink: Sink, clock: Clock) -> None:
        if ("refused", 0) not in self._told:
            self._told.add(("refused", 0))
            sink.event(clock.now_ns(), "records_dropped", "warning",
                       f"{len(self._processes)} processes have sent records: those of more are not kept")

    def _tell_enough(self, name: str, sink: Sink, clock: Clock) -> None:
        if ("traces", 0) not in self._told:
            self._told.add(("traces", 0))
            text = f"Trace {name} is not kept, nor any after it: {self._stored >> 20} MiB of traces are"
            sink.event(clock.now_ns(), "trace_lost", "warning", text)

    def _tell_damage(self, pid: int, sink: Sink, clock: Clock) -> None:
        if ("damage", pid) in self._told or len(self._told) > MAX_TOLD:
            return
        self._told.add(("damage", pid))
        known = self._processes.get(pid)
        sink.event(clock.now_ns(), "spool_damaged", "warning",
                   f"Process {pid} sent records that cannot be read; they are left out",
                   process=known.process if known else None, data={"records": self._damage(pid)})

    def _tell_dropped(self, process: ProbedProcess, sink: Sink, clock: Clock) -> None:
        if process.dropped == self._dropped_stored.get(process.pid, 0):
            return
        t_ns = clock.now_ns()
        if process.pid not in self._dropped_stored:
            sink.event(t_ns, "records_dropped", "warning",
                       f"Process {process.pid} dropped {process.dropped} records: the spool had no room",
                       process=process.process, data={"records": process.dropped})
        self._dropped_stored[process.pid] = process.dropped
        sink.sample(sink.track("recorder.dropped", process=process.process), t_ns, process.dropped)

    def _trace(self, process: ProbedProcess, record: list[Any], sink: Sink, clock: Clock) -> None:
        assert self._times is not None
        try:
            t0, t1 = self._times.of(record[1]), self._times.of(record[2])
            name, said = text(record[3], 255), mapping(record[4])
            path = self._file(name)
            large = path.lstat().st_size > AT_ONCE
        except (IndexError, ValueError, OSError) as error:
            raise BadRecord from error
        properties = {"t0_ns": t0, "t1_ns": t1, "steps": plain(said.get("steps")),
                      "size": optional_count(said.get("size")), "valid": said.get("valid") is True,
                      "note": text(said.get("note") or "")}

        def keep() -> None:
            try:
                data = compressed(path)
            except (OSError, EOFError, MemoryError) as error:
                why = str(error) or "it does not fit into memory"
                sink.event(clock.now_ns(), "trace_lost", "warning", f"Trace {name} cannot be kept: {why}",
                           process=number)
            else:
                self._stored += len(data)
                sink.attach(t0, "kineto", name, data, process=number, properties=properties)
            with suppress(OSError):
                path.unlink()

        number = process.process
        if self._stored >= MAX_TRACES_STORED:
            self._tell_enough(name, sink, clock)
            path.unlink(missing_ok=True)
        elif large:
            self._large.put(keep)
        else:
            keep()

    def _file(self, name: str) -> Path:
        """The file of that name in the spool directory itself; nothing that lies or points elsewhere."""
        if name != Path(name).name or name in ("", ".", ".."):
            raise BadRecord
        path = self._directory / name
        if not stat.S_ISREG(path.lstat().st_mode):
            raise BadRecord
        return path


def compressed(path: Path) -> bytes:
    """The file's content, gzip-compressed. OSError when it is unreadable, too large or empty."""
    with open_regular(path) as file:
        data = file.read(MAX_TRACE + 1)
    if not data:
        raise OSError("the file is empty")
    if len(data) > MAX_TRACE:
        raise OSError(f"the file has more than {MAX_TRACE} bytes")
    if data[:2] != b"\x1f\x8b":
        data = gzip.compress(data, compresslevel=3, mtime=0)
    if len(data) > MAX_TRACE_STORED:
        raise OSError(f"compressed it has {len(data)} bytes, more than {MAX_TRACE_STORED}")
    return data
