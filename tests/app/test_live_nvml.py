"""Live with the stand-in NVML library: charts carry what was planned; a missing field costs nothing else."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from app.spec import LaunchSpec
from app.widgets.folded_row import FoldedRow
from tests.app.desk import Desk
from tests.fakes import nvml

GIB = 2**30
PLAN = (
    "gpus 2", "util 31", "util:1 90", "power_mw 228000", "power_limit_mw 700000", "clock_sm 1980",
    "throttle 0",
    f"mem_total {140 * GIB}", f"mem_used {7 * GIB}", "ret nvmlDeviceGetPcieThroughput 3",
)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler to build the stand-in with")


def test_the_charts_show_what_was_planned(desk: Desk, tmp_path: Path) -> None:
    plan = nvml.Plan(tmp_path / "plan", *PLAN)
    env = nvml.environment(nvml.build(tmp_path / "library"), plan)
    wanted = {name: env[name] for name in ("LD_LIBRARY_PATH", nvml.PLAN)}
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    desk.recorder.started.connect(desk.document.open)
    desk.recorder.start(LaunchSpec(command=command, environment=wanted))
    wait = desk.qtbot.waitUntil
    wait(lambda: "power" in desk.rows and isinstance(desk.rows["pcie"], FoldedRow)
         and "not supported" in desk.rows["pcie"].reason, timeout=30_000)
    wait(lambda: len(desk.curve("power").data.lines[0].x) > 3, timeout=30_000)
    assert set(desk.curve("power").data.lines[0].y) == {228.0}
    assert desk.curve("power").data.notes == ("W of 700",)
    assert set(desk.curve("clock").data.lines[0].y) == {1980.0}
    assert desk.curve("memory").data.lines[0].newest == 7.0
    assert desk.panel.bar.devices.count() == 2
    assert desk.panel.bar.trace.isVisible()
    for device, util in ((1, 31.0), (2, 90.0)):
        desk.panel._choose_device(device)
        wait(lambda util=util: desk.curve("activity").data.lines[0].newest == util, timeout=30_000)
    plan.add("throttle 32", "clock_sm 1755")
    wait(lambda: any("thermal (software)" in t.text for t in desk.curve("clock").data.throttled),
         timeout=30_000)
    assert not desk.panel.body.side.no_gpu.isVisibleTo(desk.panel)
