"""The rows of charts for a stretch of time, in order. On the worker; free of Qt."""

from __future__ import annotations

from dataclasses import dataclass

from app.live.cores import cores_row
from app.live.rows import RowReader
from app.live.state import Live, Where
from app.widgets.chart_data import Folded, Row, Stretch
from profiler.analysis.devices import unit_of
from profiler.model import Device
from profiler.run.reader import Run


@dataclass(frozen=True, eq=False)
class ChartsData:
    rows: tuple[Row, ...] = ()
    end: float = 0.0  # the newest moment of the run
    device: Device | None = None
    marks: tuple[Stretch, ...] = ()  # of the user, of no length


def query(run: Run, live: Live, where: Where) -> ChartsData:
    """The rows for `where`, in order."""
    live.refresh(run)
    device = pick_device(run, live, where.device)
    reader = RowReader(run, live, where, device)
    rows = []
    if len(live.steps) or run.meta.get("kind") != "monitor":
        rows.append(Row("steps", "Step time", 184, reader.steps()))
    if device is not None:
        rows += [
            Row("activity", "GPU activity", 136, reader.activity()),
            _memory(reader, device),
            Row("power", "Power", 80, reader.power()),
            Row("clock", _clock_title(device), 72, reader.clock(), throttle_hatch=True),
            Row("pcie", "PCIe", 76, reader.pcie()),
        ]
    rows.append(Row("cores", "CPU cores", 124 if device is not None else 176, cores_row(run, live, where)))
    if (workers := reader.workers()) is not None:
        rows.append(Row("workers", "Loader workers", 72, workers))
    if device is None:
        rows.append(Row("host", "Host memory", 128, reader.host_memory()))
        rows += _absent(run)
    # A folded row needs no room: those go last, under the charts.
    rows.sort(key=lambda row: isinstance(row.data, Folded))
    at = [((e.t_ns - run.start_ns) / 1e9, e.text) for e in live.events if e.kind == "mark"]
    marks = tuple(Stretch(t, t, text) for t, text in at if where.x0 <= t <= where.x1)
    return ChartsData(tuple(rows), (run.end_ns - run.start_ns) / 1e9, device, marks)


def _memory(reader: RowReader, device: Device) -> Row:
    if device.properties.get("unified_memory"):
        return Row("memory", "Host memory, the GPU's too", 92, reader.host_memory(shared=True))
    return Row("memory", "GPU memory", 92, reader.gpu_memory())


def pick_device(run: Run, live: Live, wanted: int | None) -> Device | None:
    """The device asked for; else the one the target uses, or the busiest. None without any."""
    devices = {device.id: device for device in run.devices}
    if wanted in devices:
        return devices[wanted]
    if len(devices) <= 1:
        return next(iter(devices.values()), None)
    if live.chosen not in devices:
        held = [t for t in run.find("torch.mem_reserved") if t.device in devices]
        tracks = held or run.find("gpu.util")
        values = {t.device: latest[1] for t in tracks if (latest := run.latest(t.id))}
        best = max(values, key=lambda d: values[d], default=None)
        if best is not None and held:
            live.chosen = best  # only what the target itself holds is sure to stay
        return unit_of(run, devices[best] if best is not None else next(iter(devices.values())))
    return devices[live.chosen] if live.chosen is not None else None


def _clock_title(device: Device) -> str:
    return "Shader clock" if device.properties.get("vendor") == "AMD" else "SM clock"


def _absent(run: Run) -> list[Row]:
    """The GPU's rows on a machine without one: their names and the reason."""
    gpu = run.meta.get("gpu")
    gpu = gpu if isinstance(gpu, dict) else {}
    reason = str(gpu.get("reason") or "No GPU was found").rstrip(".")
    reason = reason[:1].upper() + reason[1:]
    hint = str(gpu.get("hint") or "").rstrip(".")
    short = reason.split(":")[0]
    return [
        Row("activity", "GPU activity", 56, Folded(f"{reason}. {hint}" if hint else reason)),
        Row("memory", "GPU memory", 56, Folded(f"{short}; host memory is above")),
        Row("power", "Power, SM clock", 56, Folded(short)),
        Row("pcie", "PCIe", 56, Folded(short)),
    ]
