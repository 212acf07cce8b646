"""A GPU that is not read any more: what Live shows as newest is of now, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.live import charts, crosshair, verdict
from app.live.state import Live, Where
from app.widgets.chart_data import CurveData
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from tests.runs import START_NS, run_meta

LOST = "GPU 0 (H200) does not answer: it fell off the bus or was taken away"


@contextmanager
def lost_at(path: Path, tick: int, state: str = "recording") -> Iterator[Run]:
    """12 s of host and GPU at 10 Hz; the GPU's samples end with `tick`."""
    with closing(RunWriter.create(path, run_meta(gpu=True) | {"kind": "record"})) as writer:
        device = writer.add_device("GPU-0", 0, "NVIDIA H200")
        power, host = writer.track("gpu.power", device=device), writer.track("host.cpu")
        for k in range(120):
            t = START_NS + k * 100_000_000
            writer.sample(host, t, 0.5)
            if k <= tick:
                writer.sample(power, t, 300.0)
        if tick < 119:
            writer.event(START_NS + tick * 100_000_000, "device_lost", "error", LOST, device=device)
        writer.commit()
        if state == "finished":  # the last traces are read long after the last sample
            writer.finish("finished", START_NS + 20 * 10**9)
        with closing(Run.open(path)) as run:
            yield run


def power(run: Run) -> CurveData:
    live = Live()
    live.refresh(run)
    data = next(row for row in charts.query(run, live, Where(0, 12, 400)).rows if row.key == "power").data
    assert isinstance(data, CurveData)
    return data


def shown(run: Run) -> tuple[str, str]:
    """Power in the side pane, and beside the chart's line."""
    data = power(run)
    said = {row.name: row.value for row in crosshair.query(run, Live(), None, None).rows}
    return said["Power"].replace("\u00a0", " "), data.lines[0].text.replace("\u00a0", " ")


@pytest.mark.parametrize("state", ["recording", "finished"])
def test_a_value_of_before_the_gpu_was_lost_is_not_the_newest(tmp_path: Path, state: str) -> None:
    with lost_at(tmp_path / "r.stepscope", 46, state) as run:
        assert shown(run) == ("", "")


def test_the_time_since_the_gpu_was_lost_is_hatched_with_its_reason(tmp_path: Path) -> None:
    with lost_at(tmp_path / "r.stepscope", 46) as run:
        (gap,) = power(run).gaps
        assert (gap.x0, gap.x1) == pytest.approx((4.6, 11.9)) and LOST in gap.text
    with lost_at(tmp_path / "s.stepscope", 119) as run:
        assert not power(run).gaps


def test_a_rare_value_of_before_the_gpu_was_lost_is_not_the_newest(tmp_path: Path) -> None:
    with lost_at(tmp_path / "r.stepscope", 2) as run:  # too few samples to know how often they come
        assert shown(run) == ("", "")


@pytest.mark.parametrize("state", ["recording", "finished"])
def test_the_newest_value_of_a_gpu_that_answers_is_shown(tmp_path: Path, state: str) -> None:
    with lost_at(tmp_path / "r.stepscope", 119, state) as run:
        assert shown(run) == ("300 W", "300 W")


@pytest.mark.parametrize("state", ["recording", "finished"])
def test_a_gpu_that_is_lost_before_the_first_step_is_said_in_place_of_the_verdict(tmp_path: Path,
                                                                                 state: str) -> None:
    with lost_at(tmp_path / "r.stepscope", 46, state) as run:
        live = Live()
        live.refresh(run)
        assert verdict.query(run, live).sentence == ((LOST, False),)


def test_a_gpu_that_answers_again_is_not_said_to_be_lost(tmp_path: Path) -> None:
    with lost_at(tmp_path / "r.stepscope", 46) as run:
        live = Live()
        live.refresh(run)
        lost = next(event for event in live.events if event.kind == "device_lost")
        live.events.append(replace(lost, id=lost.id + 1, kind="device_back", severity="info"))
        assert verdict.before_steps(run, live).title == "Waiting for the first step"  # type: ignore[union-attr]
        assert LOST not in str(verdict.before_steps(run, live))
