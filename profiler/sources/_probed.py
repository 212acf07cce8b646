"""One process that a probe reports from: its records become tracks, samples, events and properties."""

from __future__ import annotations

import shlex
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Any

from profiler.model import STEP_EVALUATION, STEP_PARTIAL, Sink
from profiler.sources._checked import BadRecord, count, mapping, optional_count, plain, text
from profiler.sources.tree import TargetTree

STEP_FIELDS = ("data", "h2d", "forward", "backward", "optimizer", "data_cpu", "thread_cpu", "samples",
               "optimizer_calls", "syncs", "sync", "flags")  # fmt: skip
STAGE_FIELDS = STEP_FIELDS[:5]
DEVICE_FIELDS = ("h2d", "forward", "backward", "optimizer")
MEMORY_FIELDS = ("mem_allocated", "mem_reserved", "mem_peak", "alloc_retries", "ooms", "mem_split",
                 "driver_calls")
# Of the loop's thread, and what a count is divided by: shares of the time, and how many a second.
THREAD_FIELDS = {"system": 1, "waiting": 1, "faults": 1e-9, "switches": 1e-9}
SEVERITIES = ("info", "warning", "error")
REMEMBERED_STEPS = 4096  # device times come some steps later than their step
MAX_EVENTS = 2000
MAX_SITES = 32
FAILURES = ("worker_died", "trace_still")  # kinds of events that the user is told of at the end too
MAX_FAILURES = 5


class Times:
    """Times of the probe on the run's clock. What cannot be a time of this run is refused."""

    def __init__(self, from_monotonic: Callable[[int], int], monotonic_ns: Callable[[], int]) -> None:
        self._from_monotonic = from_monotonic
        self._monotonic_ns = monotonic_ns
        self._earliest = monotonic_ns() - 60_000_000_000

    def of(self, value: Any) -> int:
        """ns since the epoch. One impossible time would stretch the run over years."""
        t = count(value)
        if not self._earliest <= t <= self._monotonic_ns() + 1_000_000_000:
            raise BadRecord
        return self._from_monotonic(t)


class ProbedProcess:
    """State of one process. `take` raises BadRecord on a record that cannot be used."""

    def __init__(self, pid: int, sink: Sink, times: Times, tree: TargetTree | None,
                 devices: Mapping[str, int]) -> None:
        self.pid = pid
        self.trained = False  # a backward or an optimizer has run
        self.dropped = 0
        self.last_step_ns: int | None = None  # end of the newest step
        self.walls: deque[int] = deque(maxlen=64)  # of the newest steps, ns
        self.still: Mapping[str, Any] = {}  # what the probe said of a standstill, until the next step
        self.ended = False
        self.failures: list[str] = []
        self._sink = sink
        self._times = times
        self._tree = tree
        self._devices = devices
        self._process: int | None = None
        self._tracks: dict[tuple[str, Any], int] = {}
        self._step_times: OrderedDict[int, int] = OrderedDict()
        self._last_step: int | None = None
        self._torch_uuids: dict[int, str] = {}
        self._sites: dict[str, list[str]] = {}
        self._loaders: dict[str, Any] = {}
        self._events = 0
        self._training_steps = 0
        self._all_steps = 0
        self._torch_threads = 0
        self._thread_read: tuple[int, list[int | None]] | None = None

    @property
    def steps(self) -> int:
        """Training steps; all steps of a process that has not trained."""
        return self._training_steps if self.trained else self._all_steps

    def take(self, code: str, record: list[Any]) -> None:
        handler = self.HANDLERS.get(code)
        if handler is None:
            raise BadRecord
        try:
            handler(self, record)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise BadRecord from error

    @property
    def process(self) -> int:
        """The id in the run. A process whose hello got lost is known by its pid alone."""
        if self._process is None:
            self._process = self._add("", None, None, {})
        return self._process

    def _add(self, command: str, rank: int | None, started: int | None, properties: dict[str, Any]) -> int:
        role = "python" if rank is None else "rank"
        if self._tree is not None:
            self._tree.loops.add(self.pid)
            if self.pid == self._tree.pid and self._tree.process is not None:
                self._sink.update_process(self._tree.process, {**properties, "rank": rank})
                return self._tree.process
        return self._sink.add_process(self.pid, role, command=command, rank=rank, started_ns=started,
                                      properties=properties)

    def _hello(self, record: list[Any]) -> None:
        self.ended = False  # another program in the same process
        said = mapping(record[1])
        argv = [text(item) for item in said.get("argv") or [] if isinstance(item, str)][:200]
        properties = {key: plain(said.get(key)) for key in ("version", "ppid", "python", "world")}
        self._process = self._add(shlex.join(argv), optional_count(said.get("rank")),
                                  self._times.of(said.get("t")), {**properties, "argv": argv})
        self._tracks.clear()

    def _torch(self, record: list[Any]) -> None:
        said = mapping(record[1])
        for index, uuid in mapping(said.get("uuid") or {}).items():
            name = text(uuid, 100)
            self._torch_uuids[int(index)] = name if name.startswith(("GPU-", "MIG-")) else f"GPU-{name}"
        self._update({"torch": plain(said)})

    def _step(self, record: list[Any]) -> None:
        index, t0, t1 = count(record[1]), self._times.of(record[2]), self._times.of(record[3])
        values = {name: optional_count(record[4 + i]) for i, name in enumerate(STEP_FIELDS)}
        if t1 <= t0 or (self._last_step is not None and t1 <= self._last_step):
            raise BadRecord
        if not values["samples"]:
            values["samples"] = None  # 0: not known
        wall = t1 - t0
        values |= {"index": index, "wall": wall}
        values["other"] = max(0, wall - sum(values[stage] or 0 for stage in STAGE_FIELDS))
        for name, value in values.items():
            self._sample(f"step.{name}", t1, value)
        if self._last_step is None:
            self._sink.event(t1, "first_step", "info", f"First step of process {self.pid}",
                             process=self.process, data={"index": index})
        self._last_step = t1
        self._step_times[index] = t1
        if len(self._step_times) > REMEMBERED_STEPS:
            self._step_times.popitem(last=False)
        flags = values["flags"] or 0
        if not flags & STEP_PARTIAL:  # one that the end has cut short is no sign that the loop goes on
            self.last_step_ns = t1
            self.walls.append(wall)
            if self.still and t1 > self.still["since_ns"]:
                self.still = {}
        self._all_steps += not flags & STEP_PARTIAL
        self._training_steps += not flags & (STEP_EVALUATION | STEP_PARTIAL)
        self.trained = self.trained or bool(values["backward"] or values["optimizer_calls"])

    def _device(self, record: list[Any]) -> None:
        index = count(record[1])
        busy, lag = mapping(record[2]), mapping(record[3])
        t_ns = self._step_times.get(index)
        if t_ns is None:
            return  # of a step that was dropped
        values = {f"step.device_{name}": optional_count(busy.get(name)) for name in DEVICE_FIELDS}
        values |= {f"step.lag_{name}": optional_count(lag.get(name)) for name in STAGE_FIELDS}
        for metric, value in values.items():
            self._sample(metric, t_ns, value)

    def _memory(self, record: list[Any]) -> None:
        t_ns, index = self._times.of(record[1]), count(record[2])
        if len(record) < 6:
            raise BadRecord
        values = [optional_count(value) for value in record[3:]]
        for name, value in zip(MEMORY_FIELDS, values, strict=False):
            self._sample(f"torch.{name}", t_ns, value, index)

    def _thread(self, record: list[Any]) -> None:
        """Counts since the thread's start become rates over the time since the last reading."""
        t_ns, counts = self._times.of(record[1]), [optional_count(value) for value in record[2:6]]
        threads = count(record[6])
        if len(counts) < len(THREAD_FIELDS):
            raise BadRecord
        before, self._thread_read = self._thread_read, (t_ns, counts)
        if before is None or threads != self._torch_threads:
            self._torch_threads = threads
            self._update({"torch_threads": threads})
        if before is None or t_ns <= before[0]:
            return
        for (name, unit), earlier, now in zip(THREAD_FIELDS.items(), before[1], counts, strict=True):
            if earlier is not None and now is not None and now >= earlier:  # else another thread's
                self._sample(f"loop.{name}", t_ns, (now - earlier) / (t_ns - before[0]) / unit)

    def _said(self, record: list[Any]) -> None:
        self._update({record[0]: plain(mapping(record[1]))})

    def _shape(self, record: list[Any]) -> None:
        self._sample("batch.shapes", self._times.of(record[1]), count(record[2]))

    def _compiled(self, record: list[Any]) -> None:
        t_ns, graphs, spent = self._times.of(record[1]), count(record[2]), count(record[3])
        self._sample("torch.graphs", t_ns, graphs)
        self._sample("torch.compile_time", t_ns, spent)

    def _copies(self, record: list[Any]) -> None:
        t_ns, copies, size = self._times.of(record[1]), count(record[2]), count(record[3])
        self._sample("torch.copies", t_ns, copies)
        self._sample("torch.copied", t_ns, size)
        self._update({"copies": plain(mapping(record[4]))})

    def _sample(self, metric: str, t_ns: int, value: float | None, torch_index: int | None = None) -> None:
        if value is None:
            return
        track = self._tracks.get((metric, torch_index))
        if track is None:
            track = self._tracks[metric, torch_index] = self._track(metric, torch_index)
        self._sink.sample(track, t_ns, value)

    def _track(self, metric: str, torch_index: int | None) -> int:
        if torch_index is None:
            return self._sink.track(metric, process=self.process)
        uuid = self._torch_uuids.get(torch_index)
        if uuid is None:
            return self._sink.track(metric, process=self.process, index=torch_index,
                                    properties={"torch_device": torch_index})
        device = self._devices.get(uuid)
        if device is None:  # torch sees a device that NVML did not tell of
            device = self._sink.add_device(uuid, torch_index, f"cuda:{torch_index}")
        return self._sink.track(metric, device=device, process=self.process,
                                properties={"torch_device": torch_index})

    def _loader(self, record: list[Any]) -> None:
        loader = plain(mapping(record[1]))
        site = loader.get("site")
        name = site if isinstance(site, str) else ""
        if len(self._loaders) < MAX_SITES or name in self._loaders:
            self._loaders[name] = loader
        # One loop may have a loader for evaluation too; the one trained from is the loader.
        training = [known for known in self._loaders.values() if known.get("train")]
        chosen = loader if loader.get("train") or not training else training[-1]
        self._update({"loader": chosen, "loaders": dict(self._loaders)})

    def _site(self, record: list[Any]) -> None:
        hook, line = text(record[1], 50), text(record[2])
        lines = self._sites.setdefault(hook, []) if len(self._sites) < MAX_SITES else []
        if line not in lines and len(lines) < MAX_SITES:
            lines.append(line)
        self._update({"sites": {hook: list(lines) for hook, lines in self._sites.items()}})

    def _event(self, record: list[Any]) -> None:
        t_ns, kind, severity = self._times.of(record[1]), text(record[2], 50), record[3]
        if severity not in SEVERITIES:
            raise BadRecord
        said, data = text(record[4]), plain(record[5] if len(record) > 5 else {})
        if kind in FAILURES and len(self.failures) < MAX_FAILURES:
            self.failures.append(said)
        self._events += 1
        if self._events <= MAX_EVENTS:
            self._sink.event(t_ns, kind, severity, said, process=self.process,
                             data=data if isinstance(data, dict) else {})

    def _standstill(self, record: list[Any]) -> None:
        said = mapping(record[2])
        since, usual = self._times.of(said.get("since")), count(said.get("usual"))
        told = {key: plain(said.get(key)) for key in ("inside", "stage", "site", "lines", "workers")}
        self.still = {**told, "since_ns": since, "usual_ns": usual}

    def _dropped(self, record: list[Any]) -> None:
        self.dropped += count(record[1])

    def _bye(self, record: list[Any]) -> None:
        self.ended = True
        self._update({"bye": plain(mapping(record[1]))})
        # What only the next record would need: in a day thousands of processes come and go.
        self._step_times.clear()
        self._tracks.clear()

    def _update(self, properties: dict[str, Any]) -> None:
        self._sink.update_process(self.process, properties)

    HANDLERS: Mapping[str, Callable[[ProbedProcess, list[Any]], None]] = {
        "hello": _hello, "torch": _torch, "step": _step, "device": _device, "memory": _memory,
        "loader": _loader, "site": _site, "event": _event, "dropped": _dropped, "bye": _bye,
        "numerics": _said, "shapes": _said, "batches": _said, "standstill": _standstill, "shape": _shape,
        "compiled": _compiled, "copies": _copies, "thread": _thread,
    }  # fmt: skip
