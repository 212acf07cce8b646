from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from profiler.sources import host
from profiler.sources.host import HostSource
from profiler.sources.tree import TargetTree
from tests.fakes.sink import ListSink
from tests.waiting import until

Cpu = namedtuple("Cpu", "user nice system idle iowait irq softirq steal guest guest_nice")


def cpu(busy: float, idle: float, iowait: float = 0.0, guest: float = 0.0) -> Cpu:
    return Cpu(busy, 0.0, 0.0, idle, iowait, 0.0, 0.0, 0.0, guest, 0.0)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.t = 1_000_000_000

    def now_ns(self) -> int:
        return self.t

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns


class Machine:
    """What psutil tells of the machine, set by a test."""

    def __init__(self) -> None:
        self.total = cpu(10, 10)
        self.cores = [cpu(5, 5), cpu(5, 5)]
        self.memory = SimpleNamespace(total=1000, available=400)
        self.disk: SimpleNamespace | None = SimpleNamespace(read_bytes=100, write_bytes=200)
        self.nics = {"eth0": SimpleNamespace(bytes_recv=10, bytes_sent=20)}

    def cpu_times(self, percpu: bool = False) -> object:
        return list(self.cores) if percpu else self.total


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    fake = Machine()
    monkeypatch.setattr(psutil, "cpu_times", fake.cpu_times)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: fake.memory)
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: fake.disk)
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: fake.nics)
    return fake


def opened(tree: TargetTree | None = None) -> tuple[HostSource, ListSink, Clock]:
    source, sink, clock = HostSource(tree or TargetTree()), ListSink(), Clock()
    source.open(sink, clock)
    return source, sink, clock


def tick(source: HostSource, sink: ListSink, clock: Clock, ns: int = 500_000_000) -> None:
    clock.t += ns
    source.read(sink, clock)


def ticks(source: HostSource, sink: ListSink, clock: Clock, times: int) -> None:
    for _ in range(times):
        tick(source, sink, clock)


def test_cpu_is_the_busy_share_between_two_readings(machine: Machine) -> None:
    source, sink, clock = opened()
    machine.total = cpu(13, 16, iowait=1, guest=2)  # a guest's time is in user time already
    tick(source, sink, clock)
    assert sink.values("host.cpu") == [(1_500_000_000, pytest.approx(3 / 10))]
    tick(source, sink, clock)  # the counters did not move: no value, and none invented
    assert len(sink.values("host.cpu")) == 1
    machine.total = cpu(14, 15, iowait=1)
    tick(source, sink, clock)
    assert sink.values("host.cpu")[-1][1] <= 1.0


def test_memory_is_what_is_not_available(machine: Machine) -> None:
    source, sink, clock = opened()
    tick(source, sink, clock)
    assert [v for _, v in sink.values("host.mem_used")] == [600]


def test_each_core_has_its_own_track(machine: Machine) -> None:
    source, sink, clock = opened()
    machine.cores = [cpu(6, 5), cpu(5, 9)]
    tick(source, sink, clock)
    assert sink.values("host.core", index=0) == [(1_500_000_000, 1.0)]
    assert sink.values("host.core", index=1) == [(1_500_000_000, 0.0)]


def test_rates_are_over_the_real_interval(machine: Machine) -> None:
    source, sink, clock = opened()
    assert machine.disk is not None
    machine.disk.read_bytes += 3000
    machine.disk.write_bytes += 600
    machine.nics["eth0"].bytes_recv += 900
    machine.nics["lo"] = SimpleNamespace(bytes_recv=10**9, bytes_sent=10**9)
    tick(source, sink, clock)
    tick(source, sink, clock, 2_500_000_000)  # a late tick
    assert sink.values("host.disk_read") == [(4_000_000_000, 1000.0)]
    assert sink.values("host.disk_write") == [(4_000_000_000, 200.0)]
    assert sink.values("host.net_recv") == [(4_000_000_000, 300.0)]
    assert sink.values("host.net_sent") == [(4_000_000_000, 0.0)]


def test_counter_that_falls_gives_no_rate(machine: Machine) -> None:
    source, sink, clock = opened()
    assert machine.disk is not None
    machine.disk.read_bytes = 5
    ticks(source, sink, clock, 2)
    assert sink.values("host.disk_read") == [] and len(sink.values("host.disk_write")) == 1
    machine.disk.read_bytes = 505
    ticks(source, sink, clock, 2)
    assert [v for _, v in sink.values("host.disk_read")] == [500.0]


def test_no_disks_and_no_network_are_missing_not_zero(machine: Machine) -> None:
    machine.disk, machine.nics = None, {}
    source, sink, clock = opened()
    tick(source, sink, clock)
    tick(source, sink, clock)
    assert {t.metric for t in sink.tracks} == {"host.cpu", "host.mem_used", "host.core"} - {
        "host.cpu",
        "host.core",
    }


def test_part_that_the_system_hides_costs_that_part_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(**_: object) -> None:
        raise FileNotFoundError("/proc/diskstats")

    monkeypatch.setattr(psutil, "disk_io_counters", hidden)
    source, sink, clock = opened()
    ticks(source, sink, clock, 10)
    assert len(sink.values("host.net_recv")) == 5 and len(sink.values("host.mem_used")) == 10
    assert [(e.kind, e.data["field"]) for e in sink.events] == [("field_absent", "disk")]
    assert "/proc/diskstats" in sink.events[0].text


def test_without_a_target_there_are_no_target_tracks() -> None:
    source, sink, clock = opened()
    tick(source, sink, clock)
    tick(source, sink, clock)
    assert not [t for t in sink.tracks if t.metric.startswith("target.")]


CHILDREN = """
import subprocess, sys
name = ("import sys; open('/proc/self/comm', 'w').write(sys.argv[1]); print(1, flush=True); "
        "sys.stdin.readline()")
children = [subprocess.Popen([sys.executable, "-c", name, n], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for n in ("pt_data_worker", "pt_data_worker", "other")]
for child in children:
    child.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
for child in children:
    child.communicate(b"\\n")
print("alone", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILDREN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="names of processes are set through /proc")
def test_tree_and_loader_workers_are_counted(
    family: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = TargetTree(family.pid, 5)
    source, sink, clock = opened(tree)
    tick(source, sink, clock)
    assert [v for _, v in sink.values("target.processes", process=5)] == [4]
    assert [v for _, v in sink.values("target.workers", process=5)] == [2]
    assert sink.values("target.mem_rss")[0][1] > 4 << 20
    assert tree.has(family.pid) and not tree.has(1)
    assert family.stdin is not None and family.stdout is not None
    family.stdin.write("\n")
    family.stdin.flush()
    assert family.stdout.readline() == "alone\n"
    until(lambda: len(tree.processes()) == 1)
    tick(source, sink, clock)
    assert sink.values("target.processes")[-1][1] == 1 and sink.values("target.workers")[-1][1] == 0
    family.stdin.write("\n")
    family.stdin.flush()
    family.wait()
    until(lambda: not tree.processes())
    before = len(sink.values("target.processes"))
    tick(source, sink, clock)
    assert len(sink.values("target.processes")) == before  # an ended target is a gap


class Used:
    """A tree of one or two processes whose use of the CPU a test sets."""

    def __init__(self) -> None:
        self.pid, self.process, self.loops = 1, 9, set[int]()
        self.cpu = {1: 100.0}
        self.names = {1: "python", 2: "pt_data_worker"}

    def processes(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, create_time=lambda: 1.0) for pid in self.cpu]

    def usage(self, process: SimpleNamespace) -> host.Usage:
        return host.Usage(self.cpu[process.pid], 10, self.names[process.pid], 0)


def test_cpu_of_the_tree_is_in_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    used = Used()
    monkeypatch.setattr(host, "usage", used.usage)
    source, sink, clock = opened(used)  # type: ignore[arg-type]
    used.cpu = {1: 100.25, 2: 0.5}  # the second one is new: all it used, it used since the last look
    tick(source, sink, clock)
    assert sink.values("target.cpu") == [(1_500_000_000, pytest.approx(1.5))]
    assert sink.values("target.workers_cpu") == [(1_500_000_000, pytest.approx(1.0))]
    used.cpu = {1: 101.25}  # a worker that ended takes nothing back
    tick(source, sink, clock)
    assert [v for _, v in sink.values("target.cpu")] == [pytest.approx(1.5), pytest.approx(2.0)]


FORKING = """
import multiprocessing, sys
def wait(pipe): pipe.recv()
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    ours, theirs = context.Pipe()
    context.Process(target=wait, args=(theirs,)).start()
    print("ready", flush=True)
    sys.stdin.readline()
    ours.send(1)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_torch_did_not_name_are_guessed(method: str, tmp_path: object) -> None:
    script = f"{tmp_path}/loop.py"
    with open(script, "w") as file:  # noqa: PTH123
        file.write(FORKING)
    process = subprocess.Popen(
        [sys.executable, script, method], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        tree = TargetTree(process.pid, 1)

        def workers() -> float | None:
            source, sink, clock = opened(tree)
            tick(source, sink, clock)
            values = sink.values("target.workers")
            return values[0][1] if values else None

        until(lambda: workers() == 1)  # the resource tracker is none
        tree.loops.update(p.pid for p in tree.processes())  # a rank started by spawn is none either
        assert workers() == 0
    finally:
        process.communicate("\n")


def test_follow_changes_the_root_and_a_missing_pid_is_an_empty_tree(family: subprocess.Popen[str]) -> None:
    tree = TargetTree()
    assert tree.processes() == []
    tree.follow(family.pid, 3)
    assert len(tree.processes()) == 4 and tree.process == 3
    tree.follow(2**22 + 1, 4)
    assert tree.processes() == []
