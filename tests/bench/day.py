"""A day of a machine, to be recorded faster than it passes: its GPUs, host, programs and troubles."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import psutil
from _stepscope_probe.spool import Spool

from tests.bench.run_size import gpu
from tests.fakes import nvml

STEP = '["step",' + ",".join(["%d"] * 15) + "]\n"
CHANGE_S = 10  # between programs that come and go
LOST_S, FAULT_S, XID_S = 1800, 300, 100  # between a GPU that is lost, a call that fails, a driver's error
Times = namedtuple("Times", "user nice system idle iowait irq softirq steal guest guest_nice")
Disk = namedtuple("Disk", "read_bytes write_bytes")
Net = namedtuple("Net", "bytes_sent bytes_recv")


class Gpus:
    """The stand-in library in this process, with values that move as those of GPUs that train."""

    def __init__(self, folder: Path, count: int, rate: float) -> None:
        library = nvml.build(folder / "library")
        os.environ |= {nvml.PLAN: str(nvml.Plan(folder / "plan").path), nvml.STATIC: "1"}
        self._library = ctypes.CDLL(str(library / nvml.SONAME))
        self._rng = random.Random(2)
        self._sources = [gpu(random.Random(3 + i), rate) for i in range(count)]
        self._slow: list[str] = []
        self._slow_at = -1

    def show(self, seconds: float, wall_ns: int) -> None:
        """What the library tells from now on."""
        lines = [
            f"gpus {len(self._sources)}",
            "gpm_rates 1",
            "buffer_count 60",
            f"buffer_stamp_us {wall_ns // 1000}",
        ]
        for i, source in enumerate(self._sources):
            (util, memory, used, reserved, _, power, energy, heat, clock, clock_mem, throttle, *_) = next(
                source
            )
            lines += (
                f"util:{i} {util * 100:.0f}",
                f"mem_util:{i} {memory * 100:.0f}",
                f"mem_used:{i} {used}",
                f"mem_reserved:{i} {reserved}",
                f"power_mw:{i} {power * 1000:.0f}",
                f"energy_mj:{i} {energy * 1000:.0f}",
                f"temp_c:{i} {heat}",
                f"clock_sm:{i} {clock}",
                f"clock_mem:{i} {clock_mem}",
                f"throttle:{i} {throttle}",
                f"mem_total:{i} {143_771 << 20}",
            )
        if int(seconds) != self._slow_at:
            self._slow_at = int(seconds)
            self._slow = self._each_second(self._slow_at)
        self._library.stand_in_lines("\n".join((*lines, *self._slow)).encode())

    def _each_second(self, second: int) -> list[str]:
        rng = self._rng
        lines = [
            "procs 2",
            f"proc_pid {100_000 + second // CHANGE_S * 2}",
            f"xids {second // XID_S}",
            f"ecc_corrected {second // XID_S}",
        ]
        for i in range(len(self._sources)):
            busy = rng.gauss(800, 60)
            lines += (
                f"gpm_sm:{i} {busy:.0f}",
                f"gpm_occupancy:{i} {busy / 2:.0f}",
                f"gpm_tensor:{i} {busy / 3:.0f}",
                f"gpm_dram:{i} {rng.gauss(400, 40):.0f}",
                f"gpm_fp32:{i} {rng.gauss(100, 10):.0f}",
                f"gpm_pcie_rx:{i} {rng.gauss(2000, 300):.0f}",
                f"gpm_pcie_tx:{i} {rng.gauss(500, 80):.0f}",
                f"gpm_nvlink_rx:{i} {rng.gauss(90_000, 9000):.0f}",
                f"gpm_nvlink_tx:{i} {rng.gauss(90_000, 9000):.0f}",
                f"proc_mem:{i} {rng.randrange(60, 70) << 30}",
                f"buffer_power_mw:{i} {rng.gauss(580_000, 15_000):.0f}",
                f"buffer_util:{i} {rng.randrange(85, 100)}",
            )
        if second % LOST_S < 90 and second > LOST_S:
            lines.append(f"ret_all:{len(self._sources) - 1} 15")
        if second % FAULT_S < 5:
            lines.append("ret:0 nvmlDeviceGetPowerUsage 999")
        return lines


class Host:
    """psutil's counters of a machine with many cores, at simulated times."""

    def __init__(self, cores: int) -> None:
        self._rng = random.Random(4)
        self._busy = [0.0] * cores
        self._at = time.monotonic()
        self._begin = self._at - 1000

    def install(self) -> None:
        psutil.cpu_times = self._cpu_times
        psutil.disk_io_counters = lambda: Disk(self._moved(3e8), self._moved(1e7))
        psutil.net_io_counters = lambda pernic: {"eth0": Net(self._moved(1e6), self._moved(1e6))}

    def _moved(self, rate: float) -> int:
        """Bytes so far."""
        return int((time.monotonic() - self._begin) * rate) + self._rng.randrange(9999)

    def _cpu_times(self, percpu: bool = False) -> Any:
        now = time.monotonic()
        for i, busy in enumerate(self._busy):
            share = 0.7 if i < 8 else 0.1
            share = min(1.0, max(0.0, self._rng.gauss(share, 0.1)))
            self._busy[i] = busy + round((now - self._at) * share, 2)
        self._at = now
        cores = [Times(busy, 0, 0, now - self._begin - busy, 0, 0, 0, 0, 0, 0) for busy in self._busy]
        return cores if percpu else Times(*map(sum, zip(*cores, strict=True)))


class Programs:
    """A target whose children come and go, each with a pid of its own, and probes that speak from some."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._probe = Spool(str(spool))
        self._child: subprocess.Popen[bytes] | None = None
        self._rng = random.Random(5)
        self.started = 0
        self._steps = 0

    def turn(self, second: int) -> None:
        """Once a second: steps of the training loop, and every so often another child."""
        if second % CHANGE_S == 0:
            self.end()
            self._child = subprocess.Popen(["sleep", "100000"])
            self.started += 1
            if second % 60 == 0:
                self._speak(1_000_000 + self.started)
        now = time.monotonic_ns()
        lines = [self._step(now - 10**9 + i * 10**8) for i in range(10)]
        self._probe.write("".join(lines))

    def end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def _step(self, t0: int) -> str:
        self._steps += 1
        parts = [self._rng.randrange(5_000_000, 15_000_000) for _ in range(5)]
        values = (self._steps, t0, t0 + 10**8, *parts, parts[0] // 3, sum(parts), 64, 1, 0, 0, 0)
        return STEP % values

    def _speak(self, pid: int) -> None:
        """A short-lived program with a probe inside."""
        now = time.monotonic_ns()
        begin, step = now - 10**9, 10**7
        lines = [f'["hello",{{"version":1,"pid":{pid},"t":{begin},"argv":["eval.py"]}}]\n', '["torch",{}]\n']
        for i in range(20):
            t0 = begin + i * step
            lines.append(STEP % (i, t0, t0 + step, 1000, 1000, 100_000, 0, 0, 500, 9000, 8, 0, 0, 0, 1))
        lines.append('["bye",{"steps":20}]\n')
        (self._spool / f"{pid}.0.spool").write_text("".join(lines))
