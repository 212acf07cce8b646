"""Live with the stand-in for AMD SMI: charts carry what was planned, under the names of AMD's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.live import charts, crosshair, side
from app.live.state import Live, Where
from app.spec import LaunchSpec
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from profiler.sources._amd_library import has_nvidia
from tests.app.desk import Desk
from tests.fakes import amdsmi_plan
from tests.runs import make_run


@pytest.mark.skipif(has_nvidia(), reason="this machine has another GPU to tell of")
def test_the_charts_show_what_was_planned(desk: Desk, tmp_path: Path) -> None:
    env = amdsmi_plan.environment(tmp_path / "plan", {"values": {"gfx_activity:1": 90}})
    wanted = {name: env[name] for name in ("PYTHONPATH", amdsmi_plan.PLAN)}
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    desk.recorder.started.connect(desk.document.open)
    desk.recorder.start(LaunchSpec(command=command, environment=wanted))
    wait = desk.qtbot.waitUntil
    wait(lambda: {"power", "pcie", "clock"} <= desk.rows.keys() and hasattr(desk.rows["pcie"], "data")
         and len(desk.curve("pcie").data.lines[0].x) > 1, timeout=30_000)
    assert set(desk.curve("power").data.lines[0].y) == {412.0}
    assert desk.curve("power").data.notes == ("W of 750",)
    assert set(desk.curve("pcie").data.lines[0].y) == {1.0}
    assert desk.curve("pcie").data.notes == ("GB/s, both ways",)
    assert desk.panel.bar.devices.count() == 2
    desk.panel._choose_device(2)
    wait(lambda: desk.curve("activity").data.lines[0].newest == 90.0, timeout=30_000)
    assert not desk.panel.body.side.no_gpu.isVisibleTo(desk.panel)


def test_rows_and_cells_are_named_for_the_card(tmp_path: Path) -> None:
    def tell(writer: RunWriter, start: int) -> None:
        card = writer.add_device("amd-1", 0, "AMD card", properties={"vendor": "AMD"})
        for metric, value in (("gpu.pcie_both", 2e9), ("gpu.clock_sm", 2100.0), ("gpu.util", 0.5)):
            track = writer.track(metric, device=card)
            for k in range(50):
                writer.sample(track, start + k * 100_000_000, value)

    with Run.open(make_run(tmp_path / "r.stepscope", events=tell)) as run:
        rows = {row.key: row for row in charts.query(run, Live(), Where(0, 5, 400)).rows}
        said = {row.name: row.value for row in crosshair.query(run, Live(), 2.0, None).rows}
    assert rows["clock"].title == "Shader clock"
    assert said["PCIe, both ways"] == "2.00\u00a0GB/s" and "PCIe rx, tx" not in said


def test_a_part_of_a_split_card_has_its_own_utilization_and_the_cards_power(tmp_path: Path) -> None:
    def tell(writer: RunWriter, start: int) -> None:
        card = writer.add_device("amd", 0, "AMD card", properties={"vendor": "AMD", "power_limit_w": 750})
        part = writer.add_device("amd/1", 1, "AMD card",
                                 properties={"vendor": "AMD", "part": 1, "part_of": "amd"})
        for device, metric, value in ((card, "gpu.util", 0.1), (card, "gpu.power", 400.0),
                                      (part, "gpu.util", 0.7)):
            track = writer.track(metric, device=device)
            for k in range(50):
                writer.sample(track, start + k * 100_000_000, value)

    with Run.open(make_run(tmp_path / "r.stepscope", events=tell)) as run:
        found = charts.query(run, Live(), Where(0, 5, 400, run.devices[1].id))
    rows = {row.key: row.data for row in found.rows}
    assert rows["activity"].lines[0].newest == pytest.approx(70)
    assert rows["power"].lines[0].newest == 400 and rows["power"].notes == ("W of 750", "of the whole card")


def test_a_card_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    gpu = {"state": "absent", "cause": "no_binding", "hint": "install it",
           "reason": "There is an AMD GPU, and the Python package amdsmi is not usable: it is not installed"}

    def tell(writer: RunWriter, start: int) -> None:
        writer.event(start, "source_off", "warning", f"the amd source is off: {gpu['reason']}",
                     data={"source": "amd"})

    with Run.open(make_run(tmp_path / "r.stepscope", meta={"gpu": gpu}, events=tell)) as run:
        told = {row.kind: row.text for row in side.query(run, Live()).events}
        rows = {row.key: row for row in charts.query(run, Live(), Where(0, 5, 400)).rows}
    assert told["source_off"] == "AMD SMI absent: the GPU source is off for this run"
    assert "AMD GPU" in rows["activity"].data.reason and "NVIDIA" not in rows["activity"].data.reason
