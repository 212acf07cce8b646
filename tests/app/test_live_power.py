"""What Live says of throttling and energy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.live import charts, side
from app.live.state import Live, Where
from app.widgets.chart_data import CurveData, Stretch
from profiler.run.reader import Run
from tests.runs import make_run


def bands(run: Run, x0: float, x1: float, width: float) -> Sequence[Stretch]:
    (data,) = [row.data for row in charts.query(run, Live(), Where(x0, x1, width)).rows if row.key == "clock"]
    assert isinstance(data, CurveData)
    return data.throttled


def test_a_reason_that_comes_and_goes_with_each_sample_is_one_event_and_few_bands(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", steps=600, stages={"forward": 100.0}, device={"forward": 90.0},
                    gpu={"gpu.util": 0.9, "gpu.clock_sm": 1500, "gpu.power": 300,
                         "gpu.throttle": lambda k: 4 * (k % 2) + 0x20 * (300 <= k < 340)})
    with Run.open(path) as run:
        told = [row for row in side.query(run, Live()).events if row.kind == "throttle"]
        few = bands(run, 0.0, 60.0, 50)
        near = bands(run, 20.0, 25.0, 800)
    assert [(row.severity, row.text.replace("\u00a0", " ").partition("; ")[0]) for row in told] == [
        ("error", "Throttled 4.0 s, thermal (software)"),
        ("info", "Throttled 30.1 of 60.1 s, power cap (software)")]
    assert "steps left out" in told[0].text and "left out" not in told[1].text
    assert 1 <= len(few) <= 100 < 2 * 300 and len(near) > 20


def test_a_power_cap_is_no_error(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a.stepscope", device={"forward": 5.0},
                    gpu={"gpu.throttle": 4.0, "gpu.energy": lambda k: 1e6 + 30.0 * k})
    with Run.open(path) as run:
        data = side.query(run, Live())
    (row,) = [row for row in data.events if row.kind == "throttle"]
    assert row.severity == "info"
    (fact,) = [fact for fact in data.facts if fact.name == "Energy"]
    assert fact.value.replace("\u00a0", " ") == "15.7 J/step" and fact.note.endswith("energy counter")


def test_energy_that_is_not_known_has_no_row(tmp_path: Path) -> None:
    with Run.open(make_run(tmp_path / "a.stepscope", device={"forward": 5.0}, gpu={"gpu.util": 0.9})) as run:
        assert "Energy" not in [fact.name for fact in side.query(run, Live()).facts]
