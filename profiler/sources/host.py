"""The machine's CPU, memory, disks and network, and what the target's tree uses of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import psutil

from profiler.model import Sink
from profiler.sources import Clock
from profiler.sources._usage import Usage, is_spawned_worker, usage, waited
from profiler.sources.tree import TargetTree

Part = Callable[[Sink | None, Clock], None]  # without a sink: take the reading, give no value

MOST_THREADS = 256  # of the target, of which waiting is read: some 10 us each

WORKER_NAME = "pt_data_worker"  # the name that newer versions of torch give their loader workers


class HostSource:
    """CPU, memory and processes at every tick; disks, network, waiting threads at every second one.

    A part that the system does not tell of is absent, with one event; the others go on.
    """

    name = "host"
    interval_ns: int | None = 500_000_000

    def __init__(self, target: TargetTree) -> None:
        self._target = target
        self._tick = 0
        self._cpu: tuple[float, float] | None = None
        self._cores: list[tuple[float, float]] = []
        self._counters: dict[str, tuple[int, float]] = {}
        self._used: dict[tuple[int, float], float] = {}
        self._used_at: int | None = None
        self._waited: tuple[int, dict[int, int]] | None = None
        self._named_workers = False
        self._guesses: dict[tuple[int, float], bool] = {}
        self._absent: set[str] = set()
        self._parts: tuple[tuple[int, dict[str, Part]], ...] = (  # every so many ticks
            (1, {"CPU": self._read_cpu, "CPU cores": self._read_cores, "memory": self._read_memory,
                 "target": self._read_target}),
            (2, {"disk": self._read_disk, "network": self._read_network,
                 "waiting threads": self._read_waiting}),
        )

    def open(self, sink: Sink, clock: Clock) -> None:
        """Take the first readings, from which the first rates are counted."""
        for _, parts in self._parts:
            for title, part in parts.items():
                self._run(title, part, None, sink, clock)

    def read(self, sink: Sink, clock: Clock) -> None:
        self._tick += 1
        for every, parts in self._parts:
            if self._tick % every == 0:
                for title, part in parts.items():
                    self._run(title, part, sink, sink, clock)

    def close(self, sink: Sink, clock: Clock) -> None:
        pass

    def _run(self, title: str, part: Part, out: Sink | None, sink: Sink, clock: Clock) -> None:
        try:
            part(out, clock)
        except Exception as error:  # a container or sandbox without this part of /proc
            if title not in self._absent:
                self._absent.add(title)
                text = f"Host, {title} is not read: {type(error).__name__}: {error}"
                sink.event(clock.now_ns(), "field_absent", "info", text, data={"field": title})

    def _read_cpu(self, sink: Sink | None, clock: Clock) -> None:
        t_ns, now = clock.now_ns(), _busy(psutil.cpu_times())
        if sink and self._cpu and (share := _share(self._cpu, now)) is not None:
            sink.sample(sink.track("host.cpu"), t_ns, share)
        self._cpu = now

    def _read_memory(self, sink: Sink | None, clock: Clock) -> None:
        memory = psutil.virtual_memory()
        if sink:
            sink.sample(sink.track("host.mem_used"), clock.now_ns(), memory.total - memory.available)

    def _read_cores(self, sink: Sink | None, clock: Clock) -> None:
        t_ns, cores = clock.now_ns(), [_busy(core) for core in psutil.cpu_times(percpu=True)]
        # A core may come or go; then one reading has no predecessor.
        for number, (before, now) in enumerate(zip(self._cores, cores, strict=False)):
            if sink and (share := _share(before, now)) is not None:
                sink.sample(sink.track("host.core", index=number), t_ns, share)
        self._cores = cores

    def _read_disk(self, sink: Sink | None, clock: Clock) -> None:
        disk = psutil.disk_io_counters()
        if disk is not None:
            t_ns = clock.now_ns()
            self._rate(sink, "host.disk_read", t_ns, disk.read_bytes)
            self._rate(sink, "host.disk_write", t_ns, disk.write_bytes)

    def _read_network(self, sink: Sink | None, clock: Clock) -> None:
        nics = [c for nic, c in psutil.net_io_counters(pernic=True).items() if not nic.startswith("lo")]
        if nics:
            t_ns = clock.now_ns()
            self._rate(sink, "host.net_recv", t_ns, sum(c.bytes_recv for c in nics))
            self._rate(sink, "host.net_sent", t_ns, sum(c.bytes_sent for c in nics))

    def _rate(self, sink: Sink | None, metric: str, t_ns: int, total: float) -> None:
        before = self._counters.get(metric)
        self._counters[metric] = (t_ns, total)
        # A total that falls is another counter: a disk or an interface went away.
        if sink and before and t_ns > before[0] and total >= before[1]:
            sink.sample(sink.track(metric), t_ns, (total - before[1]) * 1e9 / (t_ns - before[0]))

    def _read_target(self, sink: Sink | None, clock: Clock) -> None:
        processes = self._target.processes()
        if not processes:
            return
        t_ns = clock.now_ns()
        read = [(p, u) for p in processes if (u := usage(p)) is not None]
        used = {_key(p): u.cpu for p, u in read}
        workers = {_key(p) for p in self._workers(read)}
        if sink and read:
            values = {
                # Pages that processes share count in each of them; to tell them apart costs too much.
                "target.mem_rss": float(sum(u.rss for _, u in read)),
                "target.processes": float(len(read)),
                "target.workers": float(len(workers)),
            }
            if self._used_at is not None and t_ns > self._used_at:
                cores = 1e9 / (t_ns - self._used_at)
                values["target.cpu"] = self._spent(used, used) * cores
                values["target.workers_cpu"] = self._spent(used, workers) * cores
            for metric, value in values.items():
                sink.sample(sink.track(metric, process=self._target.process), t_ns, value)
        self._used, self._used_at = used, t_ns
        self._guesses = {key: guess for key, guess in self._guesses.items() if key in used}

    def _read_waiting(self, sink: Sink | None, clock: Clock) -> None:
        """How many threads of the target could run and had no core, mean since the last look."""
        processes = self._target.processes()
        t_ns, now = clock.now_ns(), dict[int, int]()
        for process in processes:
            read = waited(process.pid, MOST_THREADS - len(now))
            if read is None:
                self._waited = None
                return
            now |= read
        before, self._waited = self._waited, (t_ns, now)
        if sink and before and now and t_ns > before[0]:
            waiting = sum(max(0, ns - before[1].get(thread, ns)) for thread, ns in now.items())
            sink.sample(sink.track("target.waiting", process=self._target.process), t_ns,
                        waiting / (t_ns - before[0]))

    def _spent(self, used: dict[tuple[int, float], float], which: Iterable[tuple[int, float]]) -> float:
        """CPU seconds since the last look; all that a process has used when it is new."""
        return sum(max(0.0, used[key] - self._used.get(key, 0.0)) for key in which)

    def _workers(self, read: list[tuple[psutil.Process, Usage]]) -> list[psutil.Process]:
        named = [p for p, u in read if u.name == WORKER_NAME]
        self._named_workers = self._named_workers or bool(named)
        if self._named_workers:
            return named
        by_pid = {p.pid: p for p, _ in read}
        guessed = []
        for process, u in read:
            if process.pid == self._target.pid or process.pid in self._target.loops:
                continue
            key = _key(process)
            if key not in self._guesses:
                self._guesses[key] = is_spawned_worker(process, by_pid.get(u.parent))
            if self._guesses[key]:
                guessed.append(process)
        return guessed


def _key(process: psutil.Process) -> tuple[int, float]:
    return process.pid, process.create_time()


def _busy(times: Any) -> tuple[float, float]:
    """(busy, all) CPU seconds since boot. Guests are inside user time already."""
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - times.idle - getattr(times, "iowait", 0.0), total


def _share(before: tuple[float, float], now: tuple[float, float]) -> float | None:
    """Busy share between two readings; None when the counters did not move."""
    elapsed = now[1] - before[1]
    if elapsed <= 0:
        return None
    return min(1.0, max(0.0, (now[0] - before[0]) / elapsed))
