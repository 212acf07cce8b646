"""Reads one row of charts at a time: its lines, gaps and throttled times, or why it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.live.series import find_gaps, newest, silence, to_band, to_curve
from app.live.state import Live, Where
from app.live.steps import bars
from app.widgets.chart_data import CurveData, Folded, Line, Note, RowData, StepBars, Stretch
from profiler.analysis.devices import OWN, OWN_OF_PART, card_of
from profiler.analysis.series import throttles
from profiler.metrics import stage_title
from profiler.model import STAGES, Device, Event, Track
from profiler.run.reader import Run
from profiler.units import (
    NBSP,
    format_clock,
    format_gib,
    format_ms,
    format_number,
    format_power,
    format_share,
)

GIB, GB = 2.0**30, 1e9
REASONS = "gap", "source_stuck", "source_off", "device_lost"
MARGIN = 0.02  # of the span, read beyond the view so that lines go on to its edges
SPIKE = 1.35  # times the median of the view: a step worth a remark


class RowReader:
    """Reads the rows of one question."""

    def __init__(self, run: Run, live: Live, where: Where, device: Device | None) -> None:
        self.run, self.live, self.where, self.device = run, live, where, device
        margin = MARGIN * (where.x1 - where.x0) + 0.5
        self.t0 = run.start_ns + int((where.x0 - margin) * 1e9)
        self.t1 = run.start_ns + int((where.x1 + margin) * 1e9)
        self.process = live.steps.process
        self.card = device and card_of(run, device)
        self.whole = () if self.card is device else ("of the whole card",)

    def steps(self) -> RowData:
        steps = self.live.steps
        if not len(steps):
            return replace(StepBars(), notes=("ms", _waiting(self.run)))
        data = bars(steps, self.run.start_ns, self.where.x0, self.where.x1, self.where.width)
        unit = f"ms, median of {data.bin_seconds:g}{NBSP}s" if data.bin_seconds else "ms, each step"
        notes = (unit, "whisker: slowest") if data.bin_seconds else (unit,)
        recent = slice(-50, None)
        typical = float(np.median((steps.t1_ns - steps.t0_ns)[recent]))
        shown = self.live.step_ms if self.live.step_ms is not None else typical / 1e6
        texts = tuple(format_ms(float(np.median(row)), unit=False) if row.any() else ""
                      for row in steps.stages[:, recent])
        return replace(data, notes=notes, median=format_ms(shown * 1e6), stage_texts=texts,
                       remarks=self._remarks(data.bin_seconds))

    def _remarks(self, bin_seconds: float) -> tuple[Note, ...]:
        """The slowest step in view, when it stands out, by the stage that made it slow."""
        steps, start = self.live.steps, self.run.start_ns
        seen = np.searchsorted(steps.t1_ns, [start + self.where.x0 * 1e9, start + self.where.x1 * 1e9])
        first, last = int(seen[0]), int(seen[1])
        if last - first < 8:
            return ()
        wall = (steps.t1_ns - steps.t0_ns)[first:last]
        worst = first + int(np.argmax(wall))
        took, usual = float(wall.max()), float(np.median(wall))
        if took < SPIKE * usual:
            return ()
        extra = steps.stages[:, worst] - np.median(steps.stages[:, first:last], axis=1)
        stage = STAGES[int(np.argmax(extra))]
        end = (int(steps.t1_ns[worst]) - start) / 1e9
        # The middle of its bar: that of the bin in which it ended, or its own.
        x = (end // bin_seconds + 0.5) * bin_seconds if bin_seconds else end - took / 2e9
        return (Note(x, took / 1e6, f"slow {stage_title(stage)}, {format_number(took / 1e6)}{NBSP}ms"),)

    def activity(self) -> RowData:
        if self.whole and self.device and "part_of" not in self.device.properties:
            # a slice of MIG has no utilization of its own
            own = [self.line("gpu.sm_active", "SM activity", "m2", 100, format_share),
                   self.line("gpu.dram_active", "DRAM", "m3", 100, format_share, dashed=True)]
            return self.curves(own, "gpu.sm_active", ("%", "SM activity of the slice"), top=100)
        lines = [
            self.line("gpu.util", "utilization", "m2", 100, format_share),
            self.line("gpu.mem_util", "memory ctrl.", "m3", 100, format_share, dashed=True),
            self.line("gpu.sm_active", "SM activity", "m1", 100, format_share),
        ]
        note = "no utilization" if lines[0] is None else "utilization: any kernel"
        return self.curves(lines, "gpu.util", ("%", note), top=100)

    def gpu_memory(self) -> RowData:
        lines = [
            self.line("gpu.mem_used", "used", "m2", 1 / GIB, _gib),
            self.line("torch.mem_reserved", "reserved", "m1", 1 / GIB, _gib, torch=True),
            self.allocated(),
        ]
        total = self.device.memory_total if self.device else None
        unit = f"GiB of {format_gib(total, unit=False)}" if total else "GiB"
        return self.curves(lines, "gpu.mem_used", (unit,))

    def power(self) -> RowData:
        limit = self.card.properties.get("power_limit_w") if self.card else None
        unit = f"W of {format_number(limit)}" if isinstance(limit, int | float) else "W"
        line = self.line("gpu.power", "power", "m1", 1, format_power)
        return self.curves([line], "gpu.power", (unit, *self.whole))

    def clock(self) -> RowData:
        line = self.line("gpu.clock_sm", "clock", "m1", 1, format_clock)
        most = self.card.properties.get("max_clock_sm") if self.card else None
        unit = f"MHz of {format_number(most)}" if isinstance(most, int | float) else "MHz"
        return self.curves([line], "gpu.clock_sm", (unit, *self.whole), zero=False)

    def pcie(self) -> RowData:
        lines = [
            self.line("gpu.pcie_rx", "rx", "m1", 1 / GB, _rate),
            self.line("gpu.pcie_tx", "tx", "m3", 1 / GB, _rate, dashed=True),
        ]
        both = self.line("gpu.pcie_both", "both ways", "m1", 1 / GB, _rate)
        if both is not None:
            return self.curves([both], "gpu.pcie_both", ("GB/s, both ways", *self.whole))
        return self.curves(lines, "gpu.pcie_rx", ("GB/s, rx to GPU", *self.whole))

    def workers(self) -> RowData | None:
        """CPU of the loader's workers; no row before the first one."""
        count = self.track("target.workers")
        latest = self.run.latest(count.id) if count else None
        cpu = self.line("target.workers_cpu", "busy", "m1", 1, _cores)
        if cpu is None or latest is None or (latest[1] == 0 and not (np.nan_to_num(cpu.y) > 0).any()):
            return None
        number = self.line("target.workers", "workers", "m2", 1, format_number)
        return self.curves([number, cpu], "target.workers_cpu", ("count, busy cores",))

    def host_memory(self, shared: bool = False) -> RowData:
        """`shared`: it is the GPU's memory too, so that what torch has reserved there is a part of it."""
        machine = self.run.meta.get("machine") or {}
        total, limit = machine.get("memory_bytes"), machine.get("memory_limit")
        unit = f"GiB of {format_gib(total, unit=False)}" if total else "GiB"
        less = (f"limited to {format_gib(limit, unit=False)}",) if total and limit and limit < total else ()
        lines = [
            self.line("host.mem_used", "used", "m1", 1 / GIB, _gib),
            self.line("torch.mem_reserved", "reserved", "m3", 1 / GIB, _gib, torch=True) if shared else
            self.line("target.mem_rss", "target", "m3", 1 / GIB, _gib, dashed=True),
        ]
        return self.curves(lines, "host.mem_used", (unit, *less))

    # One line, one chart.

    def track(self, metric: str, torch: bool = False) -> Track | None:
        on_device = metric.startswith(("gpu.", "torch."))
        own = OWN + OWN_OF_PART if self.device and "part_of" in self.device.properties else OWN
        device = self.card if metric.startswith("gpu.") and metric not in own else self.device
        tracks = self.run.find(metric, device=device.id if on_device and device else None,
                               process=self.process if torch else None)
        return tracks[0] if tracks else None

    def line(
        self, metric: str, name: str, colour: str, scale: float, text: Callable[[float], str],
        dashed: bool = False, torch: bool = False,
    ) -> Line | None:
        """A curve; None where the run has no such track."""
        track = self.track(metric, torch)
        if track is None:
            return None
        series = self.run.series(track.id, self.t0, self.t1, points=int(self.where.width))
        x, y = to_curve(series, self.run.start_ns, self.live.intervals.usual(self.run, track.id), scale)
        value = newest(self.run, self.live.intervals, track)
        return Line(name, x, y, colour, dashed, None, None if value is None else value * scale,
                    "" if value is None else text(value))

    def allocated(self) -> Line | None:
        """What torch's tensors take: it goes up and down within each step, so a band."""
        track = self.track("torch.mem_allocated", torch=True)
        if track is None:
            return None
        series = self.run.series(track.id, self.t0, self.t1, points=int(self.where.width))
        usual = self.live.intervals.usual(self.run, track.id)
        x, lower, upper = to_band(series, self.run.start_ns, usual, 1 / GIB)
        if not len(x):
            return None
        low, high = float(lower[-1]), float(upper[-1])
        texts = [format_gib(v * GIB, unit=False) for v in (low, high)]
        text = texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"
        return Line("allocated", x, lower, "m3", True, upper, (low + high) / 2, text)

    def curves(
        self, lines: Sequence[Line | None], metric: str, notes: tuple[str, ...], zero: bool = True,
        top: float | None = None,
    ) -> RowData:
        """The chart of the lines there are; without any, one line why."""
        there = tuple(line for line in lines if line is not None)
        if not there:
            return Folded(self.reason(metric))
        return CurveData(there, tuple(self.gaps(metric)), tuple(self.throttled(metric)), notes, top, zero)

    def gaps(self, metric: str) -> list[Stretch]:
        track = self.track(metric)
        if track is None:
            return []
        series = self.run.series(track.id, self.t0, self.t1, points=int(self.where.width))
        found = find_gaps(series, self.run.start_ns, self.live.intervals.usual(self.run, track.id))
        if (open_end := silence(self.run, self.live.intervals, track)) is not None:
            x0, x1 = ((t_ns - self.run.start_ns) / 1e9 for t_ns in open_end)
            found.append(Stretch(x0, x1, f"no data for {x1 - x0:.1f}\u00a0s"))
        return [self._explained(gap) for gap in found]

    def _explained(self, gap: Stretch) -> Stretch:
        """With the reason that an event inside or near it gives."""
        start = self.run.start_ns
        for event in self.live.events:
            at = (event.t_ns - start) / 1e9
            said = event.data.get("reason")
            if event.kind in REASONS and gap.x0 - 1 <= at <= gap.x1 + 1:
                return replace(gap, text=f"{gap.text}: {said or event.text}")
        return gap

    def throttled(self, metric: str) -> list[Stretch]:
        """Throttled times, in the charts that they affect."""
        if metric not in ("gpu.power", "gpu.clock_sm") or self.device is None:
            return []
        track = self.track("gpu.throttle")
        if track is None:
            return []
        shortest = int((self.t1 - self.t0) / max(self.where.width, 1))  # a point of the screen
        found = throttles(*self.run.values(track.id, self.t0, self.t1), shortest)
        start = self.run.start_ns
        return [
            Stretch((t.t0_ns - start) / 1e9, (t.t1_ns - start) / 1e9,
                    f"throttled {t.took}: {', '.join(t.reasons)}")
            for t in found
        ]

    def reason(self, metric: str) -> str:
        return absent_reason(self.run, self.live.events, metric, self.device)


def absent_reason(run: Run, events: Sequence[Event], metric: str, device: Device | None) -> str:
    """Why a metric has no values, in one line."""
    for event in reversed(events):
        fields = [event.data.get("metric"), event.data.get("field"), *_listed(event.data.get("metrics"))]
        same_device = event.device is None or device is None or event.device == device.id
        if event.kind in ("field_absent", "implausible") and same_device and metric in fields:
            return event.text
    for event in reversed(events):
        if event.kind == "source_off":
            return event.text
    return "No values yet" if run.state == "recording" else "This run has no such values"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _waiting(run: Run) -> str:
    return "waiting for the first" if run.state == "recording" else "no steps were seen"


def _gib(value: float) -> str:
    return format_gib(value, unit=False)


def _rate(value: float) -> str:
    return format_number(value / GB, 2)


def _cores(value: float) -> str:
    return format_number(value, 2)
