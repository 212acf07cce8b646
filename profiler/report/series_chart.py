"""Live signals over the run as lines, gaps shown as gaps, throttled times as bands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from profiler.analysis.series import Throttle, spacing
from profiler.model import Device
from profiler.report.svg import LEFT, RIGHT, Frame, label, names, svg, tag, top_of
from profiler.units import format_bandwidth, format_gib, format_number

if TYPE_CHECKING:
    from profiler.run.reader import Run, Series

WIDTH, HEIGHT = 900.0, 84.0
POINTS = 360
LEAST = {"MB/s": 0.1}  # by unit, where an axis from 0 ends at least: a few bytes are no mountain
GAP = 3.0  # times the usual distance of samples


@dataclass(frozen=True)
class Line:
    """A track on a chart; `factor` brings its values to the chart's unit."""

    track: int
    name: str
    factor: float
    value: Callable[[float], str]  # how its newest value is written, from the track's own unit


@dataclass(frozen=True)
class Chart:
    """Lines of one unit, at most three. `top`: the end of the axis where it is known."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    top: float | None = None
    zero: bool = True
    device: int | None = None


def draw(run: Run, chart: Chart, throttles: Iterable[Throttle] = (), named: bool = True) -> str:
    """The picture; empty when no line has a sample. `named`: the first throttled time carries its reason."""
    start, end = run.start_ns, run.end_ns
    drawn = [(line, run.series(line.track, points=POINTS)) for line in chart.lines]
    drawn = [(line, series) for line, series in drawn if len(series.t_ns)]
    if not drawn:
        return ""
    low, high = _range(chart, drawn)
    frame = Frame.of(WIDTH, HEIGHT, max((end - start) / 1e9, 1e-3), low, high)
    parts = [frame.grid(chart.unit)]
    parts += [_band(frame, start, throttle, named=named and not k) for k, throttle in enumerate(throttles)]
    parts += [_hole(frame, (a - start) / 1e9, (b - start) / 1e9) for a, b in _gaps(drawn[0][1])]
    ends = []
    for k, (line, series) in enumerate(drawn):
        parts.append(tag("path", d=path(frame, series, line.factor, start), cls=f"line m{k + 1}"))
        last = float(series.high[-1])
        ends.append((frame.y(last * line.factor), f"text-m{k + 1}", line.name, line.value(last)))
    parts.append(names(ends, WIDTH - RIGHT + 10, 10.0, HEIGHT))
    parts.append(frame.times())
    return svg(WIDTH, HEIGHT + 24, f"{chart.title}, {chart.unit}", *parts)


def _range(chart: Chart, drawn: Sequence[tuple[Line, Series]]) -> tuple[float, float]:
    high = max(float(series.high.max()) * line.factor for line, series in drawn)
    low = min(float(series.low.min()) * line.factor for line, series in drawn)
    if chart.top is not None:
        high = max(high, chart.top)
        return 0.0, high
    if chart.zero or low <= 0:
        return 0.0, top_of(max(high, LEAST.get(chart.unit, 0.0)))
    pad = max(0.1 * (high - low), 0.02 * high)  # a clock need not start at zero
    return max(0.0, low - pad), high + pad


def path(frame: Frame, series: Series, factor: float, start_ns: int) -> str:
    """Path data: through every sample, or along the smallest and largest of each entry; broken at gaps."""
    far = _far(series)
    words, before = [], None
    for t0, t1, low, high in zip(series.t_ns.tolist(), series.end_ns.tolist(), series.low.tolist(),
                                 series.high.tolist()):
        x = frame.x((t0 - start_ns) / 1e9)
        joined = before is not None and t0 - before <= far
        y0, y1 = frame.y(low * factor), frame.y(high * factor)
        words.append(f"{'L' if joined else 'M'}{x:.1f} {y0:.1f}")
        if high != low:
            words.append(f"L{x:.1f} {y1:.1f}")
        elif not joined:
            words.append("h0.01")  # a single sample is a dot
        before = t1
    return "".join(words)


def _far(series: Series) -> float:
    """The distance in ns from which two entries do not belong together."""
    usual = spacing(series.t_ns)
    return GAP * usual if usual == usual else float("inf")


def _gaps(series: Series) -> list[tuple[int, int]]:
    far = _far(series)
    apart = series.t_ns[1:] - series.end_ns[:-1]
    return [(int(series.end_ns[k]), int(series.t_ns[k + 1])) for k in np.flatnonzero(apart > far)]


def _hole(frame: Frame, left: float, right: float) -> str:
    x = frame.x(left)
    width = max(1.0, frame.x(right) - x)
    return tag("g", tag("title", escape(f"no data from {left:.1f} to {right:.1f} s")),
               tag("rect", x=x, y=frame.y.p1, width=width, height=frame.height - frame.y.p1,
                   fill="url(#hatch-gap)"))


def _band(frame: Frame, start_ns: int, throttle: Throttle, named: bool) -> str:
    left, right = (throttle.t0_ns - start_ns) / 1e9, (throttle.t1_ns - start_ns) / 1e9
    x = max(frame.x(left), LEFT)
    width = max(1.0, frame.x(right) - x)
    text = f"throttled: {', '.join(throttle.reasons)}"
    box = {"x": x, "y": frame.y.p1, "width": width, "height": frame.height - frame.y.p1}
    shown = label(min(x + 4, WIDTH - RIGHT - 180), frame.y.p1 + 10, text, cls="band-text") if named else ""
    return tag("g", tag("title", escape(text)), tag("rect", **box, cls="band"),
               tag("rect", **box, fill="url(#hatch-throttle)"), shown)


def charts(run: Run) -> list[Chart]:
    """Every chart of live signals for which the run has a track, GPUs first."""
    found: list[Chart | None] = []
    for device in run.devices:
        found += _of_device(run, device, f"{device.label} " if len(run.devices) > 1 else "GPU ")
    found += [
        _chart(run, "CPU of the machine", "%", (("host.cpu", "all cores"),), 100, _percent, top=100.0),
        _chart(run, "CPU of the run", "cores", (("target.cpu", "all"), ("target.workers_cpu", "workers")), 1,
               lambda v: format_number(v, 1)),
        _chart(run, "Memory of the run", "GiB", (("target.mem_rss", "resident"),), 2.0**-30, format_gib),
        _chart(run, "Disk", "MB/s", (("host.disk_read", "read"), ("host.disk_write", "write")), 1e-6,
               format_bandwidth),
        _chart(run, "Network", "MB/s", (("host.net_recv", "received"), ("host.net_sent", "sent")), 1e-6,
               format_bandwidth),
    ]
    return [chart for chart in found if chart is not None]


def _of_device(run: Run, device: Device, prefix: str) -> list[Chart | None]:
    busy = (("gpu.util", "utilization"), ("gpu.mem_util", "memory ctrl."))
    active = (("gpu.sm_active", "SM"), ("gpu.tensor_active", "tensor"), ("gpu.dram_active", "DRAM"))
    bus = (("gpu.pcie_rx", "to GPU"), ("gpu.pcie_tx", "from GPU"), ("gpu.pcie_both", "both ways"))
    degrees = "\u00b0C"
    return [
        _chart(run, prefix + "utilization", "%", busy, 100, _percent, top=100.0, device=device.id),
        _chart(run, prefix + "activity", "%", active, 100, _percent, top=100.0, device=device.id),
        _memory(run, device, prefix),
        _chart(run, prefix + "power", "W", (("gpu.power", "power"),), 1, _number("W"), device=device.id),
        _chart(run, prefix + "clock", "MHz", (("gpu.clock_sm", "SM"),), 1, _number("MHz"), zero=False,
               device=device.id),
        _chart(run, prefix + "temperature", degrees, (("gpu.temperature", "GPU"),), 1, _number(degrees),
               zero=False, device=device.id),
        _chart(run, prefix + "PCIe", "MB/s", bus, 1e-6, format_bandwidth, device=device.id),
    ]


def _memory(run: Run, device: Device, prefix: str) -> Chart | None:
    """Of a device without memory of its own that of the host, and said so."""
    total = device.memory_total / 2**30 if device.memory_total else None
    torch = (("torch.mem_reserved", "reserved"), ("torch.mem_allocated", "allocated"))
    if not device.properties.get("unified_memory"):
        return _chart(run, prefix + "memory", "GiB", (("gpu.mem_used", "used"), *torch), 2.0**-30, format_gib,
                      top=total, device=device.id)
    parts = (_chart(run, "", "GiB", (("host.mem_used", "used"),), 2.0**-30, format_gib),
             _chart(run, "", "GiB", torch, 2.0**-30, format_gib, device=device.id))
    lines = tuple(line for part in parts if part is not None for line in part.lines)
    return Chart(f"Host memory, shared with {prefix.strip()}", "GiB", lines) if lines else None


def _chart(run: Run, title: str, unit: str, wanted: Sequence[tuple[str, str]], factor: float,
           value: Callable[[float], str], top: float | None = None, zero: bool = True,
           device: int | None = None) -> Chart | None:
    lines = []
    for metric, name in wanted:
        tracks = run.find(metric, device=device) if device is not None else run.find(metric)
        if tracks:
            lines.append(Line(tracks[0].id, name, factor, value))
    return Chart(title, unit, tuple(lines), top, zero, device) if lines else None


def _percent(value: float) -> str:
    return f"{format_number(100 * value)}\u00a0%"


def _number(unit: str) -> Callable[[float], str]:
    return lambda value: f"{format_number(value)}\u00a0{unit}"
