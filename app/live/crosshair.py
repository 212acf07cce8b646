"""The values at one moment: at the crosshair, or the newest. On the worker; free of Qt."""

from __future__ import annotations

from dataclasses import dataclass

from app.live.charts import pick_device
from app.live.series import newest
from app.live.side import FactRow
from app.live.state import Live
from profiler.model import Device
from profiler.run.reader import Run
from profiler.units import (
    format_clock,
    format_count,
    format_gib,
    format_ms,
    format_number,
    format_power,
    format_share,
    format_temperature,
)

REACH = 3.0  # usual intervals: a sample farther away says nothing about this moment


@dataclass(frozen=True)
class MomentData:
    t: float | None = None  # s since the start; None: the newest values
    rows: tuple[FactRow, ...] = ()


def query(run: Run, live: Live, at: float | None, wanted: int | None) -> MomentData:
    """Values at `at` seconds since the start; the newest ones where it is None."""
    device = pick_device(run, live, wanted)
    t_ns = run.end_ns if at is None else run.start_ns + int(at * 1e9)
    moment = _Moment(run, live, t_ns, device, newest=at is None)
    rows = [moment.step(), *(moment.device_rows() if device else ()), *moment.host_rows(device is None)]
    return MomentData(at, tuple(row for row in rows if row is not None))


class _Moment:
    def __init__(self, run: Run, live: Live, t_ns: int, device: Device | None, newest: bool) -> None:
        self.run, self.live, self.t_ns, self.device, self.newest = run, live, t_ns, device, newest

    def step(self) -> FactRow | None:
        steps = self.live.steps
        if not len(steps):
            return None
        i = len(steps) - 1 if self.newest else steps.at(self.t_ns)
        if i is None:
            return FactRow("Step", "", "between two steps")
        wall = float(steps.t1_ns[i] - steps.t0_ns[i])
        return FactRow("Step", format_count(int(steps.index[i]) + 1), format_ms(wall))

    def device_rows(self) -> list[FactRow]:
        util, busy = format_share(self.of("gpu.util")), format_share(self.of("gpu.mem_util"))
        used, free = self.of("gpu.mem_used"), self.of("gpu.mem_free")
        free_text = format_gib(free)
        power, sm = format_power(self.of("gpu.power")), format_clock(self.of("gpu.clock_sm"))
        pcie, both = (_join(_gigabytes(self.of("gpu.pcie_rx")), _gigabytes(self.of("gpu.pcie_tx"))),
                      _gigabytes(self.of("gpu.pcie_both")))
        return [
            FactRow("Utilization", util, f"memory ctrl. {busy}" if busy else ""),
            FactRow("Memory used", format_gib(used), f"{free_text} free" if free_text else ""),
            FactRow("Power", power, _join(sm, format_temperature(self.of("gpu.temperature")))),
            FactRow("PCIe, both ways", f"{both}\u00a0GB/s") if both else
            FactRow("PCIe rx, tx", f"{pcie}\u00a0GB/s" if pcie else ""),
        ]

    def host_rows(self, alone: bool) -> list[FactRow]:
        if not alone:
            return []
        cpu, target, rss = self.of("host.cpu"), self.of("target.cpu"), self.of("target.mem_rss")
        return [
            FactRow("CPU", format_share(cpu),
                    f"target {format_number(target, 2)} cores" if target is not None else ""),
            FactRow("Memory used", format_gib(self.of("host.mem_used")),
                    f"target {format_gib(rss)}" if rss is not None else ""),
        ]

    def of(self, metric: str) -> float | None:
        """The sample nearest to the moment; None where none is near."""
        device = self.device.id if self.device and metric.startswith("gpu.") else None
        tracks = self.run.find(metric, device=device)
        if not tracks:
            return None
        if self.newest:
            return newest(self.run, self.live.intervals, tracks[0])
        reach = int(REACH * (self.live.intervals.usual(self.run, tracks[0].id) or 1e9) / 2)
        times, values = self.run.values(tracks[0].id, self.t_ns - reach, self.t_ns + reach)
        if not len(times):
            return None
        return float(values[abs(times - self.t_ns).argmin()])


def _gigabytes(rate: float | None) -> str:
    return format_number(None if rate is None else rate / 1e9, 2)


def _join(*texts: str) -> str:
    return ", ".join(text for text in texts if text)
