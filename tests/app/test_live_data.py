"""What Live says of a run, against the analysis and against what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.live import charts, crosshair, side, verdict
from app.live.state import Live, Where
from app.widgets.chart_data import CurveData, Folded, HeatData, Row, StepBars
from profiler.analysis.facts import gather
from profiler.run.reader import Run
from profiler.run.writer import RunWriter
from profiler.units import format_ms, format_rate
from tests.app.story import GAP, THROTTLED, Story, baseline, without_gpu
from tests.runs import START_NS, make_run


@pytest.fixture(scope="module")
def gpu_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    path = tmp_path_factory.mktemp("live") / "gpu.stepscope"
    baseline(path, finish=True)
    with Run.open(path) as run:
        yield run


@pytest.fixture(scope="module")
def cpu_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    path = tmp_path_factory.mktemp("live") / "cpu.stepscope"
    without_gpu(path).finish(30.0)
    with Run.open(path) as run:
        yield run


def rows(run: Run, x0: float = 16.2, x1: float = 46.2, width: float = 800) -> dict[str, Row]:
    return {row.key: row for row in charts.query(run, Live(), Where(x0, x1, width)).rows}


def curve(row: Row) -> CurveData:
    assert isinstance(row.data, CurveData)
    return row.data


def test_all_charts_of_a_gpu_run(gpu_run: Run) -> None:
    found = rows(gpu_run)
    assert list(found) == ["steps", "activity", "memory", "power", "clock", "pcie", "cores"]
    assert isinstance(found["steps"].data, StepBars)
    assert isinstance(found["cores"].data, HeatData)
    assert [line.name for line in curve(found["memory"]).lines] == ["used", "reserved", "allocated"]
    assert [line.text for line in curve(found["memory"]).lines][:2] == ["7.1", "6.4"]
    assert curve(found["power"]).notes == ("W of 700",)


def test_about_two_points_for_a_pixel(gpu_run: Run) -> None:
    for row in rows(gpu_run, 0.0, 46.2, 100).values():
        for line in row.data.lines if isinstance(row.data, CurveData) else ():
            assert len(line.x) <= 4 * 100 + 60


def test_the_gap_is_a_break_with_its_reason(gpu_run: Run) -> None:
    data = curve(rows(gpu_run)["pcie"])
    (gap,) = data.gaps
    assert gap.x0 == pytest.approx(GAP[0], abs=0.11)
    assert gap.x1 == pytest.approx(GAP[1], abs=0.11)
    assert "PCIe read timed out" in gap.text
    rx = data.lines[0]
    inside = rx.y[(rx.x > gap.x0 - 1e-6) & (rx.x < gap.x1 - 1e-6)]
    assert np.isnan(inside).any()
    assert not curve(rows(gpu_run)["power"]).gaps


def test_throttling_is_a_band_in_the_charts_that_it_touches(gpu_run: Run) -> None:
    found = rows(gpu_run)
    for key in ("power", "clock"):
        (band,) = curve(found[key]).throttled
        assert (band.x0, band.x1) == pytest.approx(THROTTLED, abs=0.11)
        assert "thermal (software)" in band.text
    assert not curve(found["activity"]).throttled
    assert found["clock"].throttle_hatch


def test_the_slow_step_is_named_by_its_stage(gpu_run: Run) -> None:
    data = rows(gpu_run)["steps"].data
    assert isinstance(data, StepBars)
    (remark,) = data.remarks
    assert remark.text.startswith("slow data wait, 7")


def test_without_a_gpu_its_rows_are_one_line_with_the_reason(cpu_run: Run) -> None:
    found = rows(cpu_run, 0, 30)
    assert list(found) == ["steps", "cores", "host", "activity", "memory", "power", "pcie"]
    for key in ("activity", "memory", "power", "pcie"):
        data = found[key].data
        assert isinstance(data, Folded)
        assert "No NVIDIA driver" in data.reason
    assert [line.name for line in curve(found["cores"]).lines] == ["core 0", "core 1"]
    assert [line.name for line in curve(found["host"]).lines] == ["used", "target"]


def test_an_absent_field_has_its_own_reason(tmp_path: Path) -> None:
    def tell(writer: RunWriter, start: int) -> None:
        writer.event(start, "field_absent", "info", "Power: not supported by this GPU", device=1,
                     data={"metrics": ["gpu.power"]})

    path = make_run(tmp_path / "r.stepscope", gpu={"gpu.util": 0.5}, events=tell)
    with Run.open(path) as run:
        found = rows(run, 0, 5)
    assert found["power"].data == Folded("Power: not supported by this GPU")
    assert isinstance(found["activity"].data, CurveData)
    assert found["clock"].data == Folded("This run has no such values")


def test_of_several_gpus_the_targets_is_shown_and_another_can_be_chosen(tmp_path: Path) -> None:
    story = Story(tmp_path / "r.stepscope", gpus=3)
    story.advance(6.0)
    story.finish(6.0)
    with Run.open(story.path) as run:
        live = Live()
        first = charts.query(run, live, Where(0, 6, 400))
        assert first.device is not None and first.device.id == story.devices[0]
        other = charts.query(run, live, Where(0, 6, 400, story.devices[2]))
        assert other.device is not None and other.device.id == story.devices[2]
        power = {key: curve({r.key: r for r in data.rows}["power"]).lines[0].newest
                 for key, data in (("first", first), ("other", other))}
        assert power["first"] is not None and power["other"] is not None
        assert power["first"] > 1.3 * power["other"]


def test_workers_have_a_row_once_there_are_some(tmp_path: Path) -> None:
    host = {"target.workers": 4, "target.workers_cpu": 1.5}
    with Run.open(make_run(tmp_path / "a.stepscope", host=host)) as run:
        assert [line.name for line in curve(rows(run, 0, 4)["workers"]).lines] == ["workers", "busy"]
    none = {"target.workers": 0, "target.workers_cpu": 0}
    with Run.open(make_run(tmp_path / "b.stepscope", host=none)) as run:
        assert "workers" not in rows(run, 0, 4)


@pytest.mark.parametrize("which", ["gpu_run", "cpu_run"])
def test_the_pane_says_what_the_analysis_says(which: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(which)
    data = side.query(run, Live())
    facts = gather(run, run.processes[0].id)
    summary = facts.summary
    assert summary is not None
    stages = {row.stage: row for row in data.stages if row.stage}
    assert {name: row.host for name, row in stages.items()} == {
        name: format_ms(summary.stages[name], unit=False) for name in stages}
    step = float(data.stages[-1].host)
    assert sum(float(row.host) for row in stages.values()) == pytest.approx(step, abs=0.3)
    said = {row.name: row for row in data.facts}
    assert said["Step, median"].value == format_ms(summary.spread.median)
    assert said["Throughput"].value == format_rate(summary.throughput)
    assert said["Steps counted"].value == f"{summary.steady} of {summary.total}"
    assert (data.step, data.steps_planned) == (summary.total, 2000)
    assert ("Exposed wait" in said) is (which == "gpu_run")
    assert bool(data.gpu_absent) is (which == "cpu_run")


def test_device_times_stand_beside_the_stages_and_are_not_added(gpu_run: Run) -> None:
    data = side.query(gpu_run, Live())
    by_name = {row.stage: row for row in data.stages}
    assert by_name["backward"].device == "9.9"
    assert by_name["data"].lag == "5.3"
    assert by_name["other"].device == ""
    assert by_name[""].device == "18.8"


def test_events_are_newest_first_and_say_when(gpu_run: Run) -> None:
    events = side.query(gpu_run, Live()).events
    assert [e.t for e in events] == sorted((e.t for e in events), reverse=True)
    assert {e.time for e in events} >= {"00:29.4", "00:23.4"}


def test_the_steps_tell_of_warm_up_and_stalls(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", steps=100, stages={
        "data": lambda k: 300 if k == 60 else 80 if k < 12 else 30, "forward": 10, "backward": 20})
    with Run.open(path) as run:
        said = {event.kind: event.text for event in side.query(run, Live()).events}
    assert said["warmup_end"].startswith("Warm-up ended at step ")
    assert said["slow_step"].startswith("Slow data wait: step 61 took 330")


def test_values_at_the_crosshair_are_those_written(gpu_run: Run) -> None:
    live = Live()
    side.query(gpu_run, live)
    data = crosshair.query(gpu_run, live, 25.0, None)
    said = {row.name: (row.value, row.note) for row in data.rows}
    assert said["Power"][1].startswith("1\u00a0755\u00a0MHz")
    assert said["Memory used"] == ("7.1\u00a0GiB", "133.3\u00a0GiB free")
    i = live.steps.at(START_NS + 25 * 10**9)
    assert i is not None
    wall = live.steps.t1_ns[i] - live.steps.t0_ns[i]
    assert said["Step"] == (str(live.steps.index[i] + 1), format_ms(wall))


def test_inside_a_gap_and_before_the_steps_the_cells_are_empty(gpu_run: Run) -> None:
    live = Live()
    side.query(gpu_run, live)
    gap = {row.name: row.value for row in crosshair.query(gpu_run, live, 29.75, None).rows}
    assert gap["PCIe rx, tx"] == ""
    assert gap["Memory used"] == "7.1\u00a0GiB"
    early = {row.name: row for row in crosshair.query(gpu_run, live, 1.0, None).rows}
    assert early["Step"].value == ""


def test_the_newest_values_without_a_crosshair(gpu_run: Run) -> None:
    live = Live()
    side.query(gpu_run, live)
    data = crosshair.query(gpu_run, live, None, None)
    assert data.t is None
    assert data.rows[0].value == str(len(live.steps))


def test_the_verdict_of_a_starved_run(gpu_run: Run) -> None:
    data = verdict.query(gpu_run, Live())
    assert (data.word, data.title, data.stage) == ("input_bound", "Input-bound", "data")
    strong = [text for text, is_strong in data.sentence if is_strong]
    assert len(strong) == 2 and strong[0].startswith("36.")
    assert data.remedy.startswith("workers 0 \u2192 ")
    assert data.prediction.startswith("predicts ")
    assert data.testable


def test_events_begin_with_a_capital_and_functions_keep_their_names(tmp_path: Path) -> None:
    story = Story(tmp_path / "r.stepscope")
    story.advance(5.0)
    for text in ("torch.save took 60 ms", "garbage collection took 60 ms"):
        story.event(4.5, "pause", "info", text)
    story.finish(5.0)
    with Run.open(story.path) as run:
        told = {event.text for event in side.query(run, Live()).events}
    assert told >= {"torch.save took 60 ms", "Garbage collection took 60 ms"}


def test_before_there_are_steps_no_verdict(tmp_path: Path) -> None:
    story = Story(tmp_path / "r.stepscope")
    story.advance(2.0)
    with Run.open(story.path) as run:
        live = Live()
        assert verdict.query(run, live).word == "waiting"
        story.advance(3.9)
        run.refresh()
        assert verdict.query(run, live).word == "warming"
        assert isinstance(rows(run, 0, 4)["steps"].data, StepBars)
    story.finish(4.0)


def test_watching_needs_no_verdict(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", steps=0, meta={"kind": "monitor"}, host={"host.cpu": 0.5})
    with Run.open(path) as run:
        assert verdict.query(run, Live()).word == "watching"
        assert "watched" in side.query(run, Live()).lacks


def test_milliseconds_are_strong_but_not_those_of_the_step() -> None:
    text = "36.2\u00a0ms of 52.3\u00a0ms per step wait for data, 30.9\u00a0ms of it exposed"
    parts = verdict.strong_parts(text)
    assert "".join(part for part, _ in parts) == text
    assert [part for part, strong in parts if strong] == ["36.2\u00a0ms", "30.9\u00a0ms"]


def test_a_run_with_nothing_in_it(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r.stepscope", steps=0)
    with Run.open(path) as run:
        live = Live()
        assert rows(run, 0, 1)["steps"].data.heights.size == 0  # type: ignore[union-attr]
        assert side.query(run, live).stages == ()
        assert verdict.query(run, live).word == "unknown"
        assert crosshair.query(run, live, 0.5, None).rows[0].value == ""


def test_a_trace_in_the_run_is_told(tmp_path: Path) -> None:
    story = without_gpu(tmp_path / "r.stepscope", until=6.0)
    story.writer.attach(START_NS + 4_000_000_000, "kineto", "1.trace.json", b"{}", process=story.process,
                        properties={"steps": [30, 37]})
    story.event(0.0, "source_off", "warning", "the nvml source is off: " + 30 * "long ", source="nvml")
    with Run.open(story.finish(6.0)) as run:
        told = {row.kind: row.text for row in side.query(run, Live()).events}
    assert told["trace"] == "Trace of 8 steps, kept in the run file"
    assert told["source_off"] == "NVML absent: the GPU source is off for this run"
