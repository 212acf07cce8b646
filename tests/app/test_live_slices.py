"""Live of a slice of MIG (N09), and of a GPU without memory of its own (N02)."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.live import charts
from app.live.state import Live, Where
from app.widgets.chart_data import CurveData, Row
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.analysis.test_devices import SLICES, split
from tests.runs import MS, make_run

GIB = 1 << 30


def rows(run: Run, device: int | None = None) -> tuple[str, dict[str, Row]]:
    data = charts.query(run, Live(), Where(0.0, 3.0, 400, device=device))
    assert data.device is not None
    return data.device.uuid, {row.key: row for row in data.rows}


def curve(row: Row) -> CurveData:
    assert isinstance(row.data, CurveData), row
    return row.data


def test_n09_a_slice_has_its_memory_and_activity_and_the_rest_is_the_whole_cards(tmp_path: Path) -> None:
    with Run.open(split(tmp_path / "a.stepscope", other=False, visible=1)) as run:
        uuid, found = rows(run)
    assert uuid == SLICES[1]
    memory, activity = curve(found["memory"]), curve(found["activity"])
    assert [line.newest for line in memory.lines] == [2.0] and memory.notes == ("GiB of 10.0",)
    assert [(line.name, line.newest) for line in activity.lines] == [("SM activity", pytest.approx(60.0))]
    for key, value in (("power", 300.0), ("clock", 1000.0), ("pcie", 5.0)):
        assert curve(found[key]).lines[0].newest == value
        assert "of the whole card" in curve(found[key]).notes
    assert curve(found["clock"]).throttled


def test_n09_the_card_itself_can_be_looked_at(tmp_path: Path) -> None:
    with Run.open(split(tmp_path / "a.stepscope", other=False)) as run:
        uuid, found = rows(run, next(d.id for d in run.devices if d.index == 1))
    assert uuid.startswith("GPU-") and [line.newest for line in curve(found["memory"]).lines] == [70.0]
    assert "of the whole card" not in curve(found["power"]).notes


def unified(path: Path) -> Path:
    def put(writer: RunWriter, start: int) -> None:
        device = writer.add_device("GPU-1", 0, "GB10", properties={"unified_memory": True})
        writer.event(start, "field_absent", "info", "GPU 0, memory is not read: not supported", device=device,
                     data={"field": "memory", "metrics": ["gpu.mem_used"]})
        tracks = ((writer.track("gpu.util", device=device), 0.9), (writer.track("host.mem_used"), 20 * GIB),
                  (writer.track("torch.mem_reserved", device=device, process=1), 8 * GIB),
                  (writer.track("torch.mem_peak", device=device, process=1), 7 * GIB),
                  (writer.track("torch.mem_allocated", device=device, process=1), 6 * GIB))
        for tick in range(40):
            for track, value in tracks:
                writer.sample(track, start + round((500 + tick * 50) * MS), value)

    return make_run(path, events=put, properties={"torch": {"device_count": 1, "uuid": {"0": "1"}}})


def test_n02_memory_that_is_the_hosts_is_called_so(tmp_path: Path) -> None:
    with Run.open(unified(tmp_path / "a.stepscope")) as run:
        found = rows(run)[1]
    assert "Host memory" in found["memory"].title
    assert [(line.name, line.newest) for line in curve(found["memory"]).lines] == [
        ("used", 20.0), ("reserved", 8.0)]
