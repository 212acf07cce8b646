from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.steps import load_steps
from profiler.report import html
from profiler.report.page import BANDS, page
from profiler.report.ratio_chart import ratio_chart
from profiler.report.series_chart import charts, draw
from profiler.report.step_chart import bins, stage_bar, step_chart
from profiler.report.svg import label, ticks, top_of
from profiler.run.reader import Run
from tests.runs import STAGE_MS, make_run


@given(st.floats(-1e6, 1e6), st.floats(1.0, 1e6), st.integers(2, 8))
def test_ticks_are_in_range_and_few(low: float, span: float, most: int) -> None:
    values = ticks(low, low + span, most)
    assert 2 <= len(values) <= 2 * most + 1
    assert all(low - 1e-6 * span <= v <= low + span * (1 + 1e-6) for v in values)
    assert values == sorted(values)


@given(st.floats(1e-9, 1e12))
def test_axis_ends_above_the_value_and_not_far(value: float) -> None:
    assert value * (1 - 1e-9) <= top_of(value) <= 2.01 * value


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_axis_of_nothing(value: float) -> None:
    assert top_of(value) == 1.0


def test_texts_are_escaped() -> None:
    assert label(0, 0, "<b>") == '<text x="0" y="0">&lt;b&gt;</text>'


def test_each_step_or_the_median_of_a_stretch(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope", steps=300,
                    stages={**STAGE_MS, "data": lambda k: 400.0 if k == 150 else 36.2})
    with Run.open(path) as run:
        steps = load_steps(run)
        left, right, chosen, slowest = bins(steps, run.start_ns, run.end_ns, 1000)
        assert len(chosen) == 300 and np.allclose((right - left) * 1e9, steps.wall)
        left, right, chosen, slowest = bins(steps, run.start_ns, run.end_ns, 50)
        assert len(chosen) <= 50
        assert np.allclose(steps.wall[chosen], 52.3e6)  # the median of a stretch hides one slow step ...
        assert slowest.max() == pytest.approx(416.1e6)  # ... which its whisker shows
        _, note = step_chart(steps, run.start_ns, run.end_ns)
    assert "whisker to the slowest" in note and "416" in note


def test_stage_bar_is_to_scale() -> None:
    picture = ElementTree.fromstring(stage_bar(STAGE_MS, 523.0))
    wide = [float(part.attrib["width"]) for part in picture.iter("{http://www.w3.org/2000/svg}rect")
            if part.attrib.get("class") == "fill-data" and part.attrib["height"] == "32"]
    assert wide == [pytest.approx(362.0)]
    assert stage_bar({}) == stage_bar(dict.fromkeys(STAGE_MS, 0.0)) == ""


def test_gaps_break_the_line_and_are_marked(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope", steps=400, host={
        "host.cpu": lambda k: None if 50 <= k < 80 else 0.5})
    with Run.open(path) as run:
        chart = next(c for c in charts(run) if c.title == "CPU of the machine")
        picture = draw(run, chart)
    line, = re.findall(r'd="([^"]+)" class="line m1"', picture)
    assert line.count("M") == 2
    assert "no data from 4.9 to 8.0 s" in picture
    assert "hatch-gap" in picture


def test_throttled_times_are_bands_with_their_reason(tmp_path: Path) -> None:
    from profiler.analysis.series import throttles

    path = make_run(tmp_path / "run.stepscope", steps=400, gpu={
        "gpu.util": 0.9, "gpu.throttle": lambda k: 0x40 if 50 <= k < 80 else 0})
    with Run.open(path) as run:
        chart = charts(run)[0]
        picture = draw(run, chart, throttles(*run.values(run.find("gpu.throttle")[0].id)))
    assert "throttled: thermal (hardware)" in picture


def test_no_sample_no_chart(tmp_path: Path) -> None:
    with Run.open(make_run(tmp_path / "run.stepscope", steps=0)) as run:
        assert charts(run) == []
    assert ratio_chart({"ratio": None}) == ""


@pytest.mark.parametrize(("rate", "top"), [(40.0, "0.10"), (40e6, "40")])
def test_a_few_bytes_fill_no_axis(tmp_path: Path, rate: float, top: str) -> None:
    path = make_run(tmp_path / "run.stepscope", host={"host.net_recv": rate})
    with Run.open(path) as run:
        picture = next(draw(run, chart) for chart in charts(run) if chart.title == "Network")
    assert f">{top} MB/s<" in picture.replace("\u00a0", " ") and "0.0000" not in picture


def test_a_reason_that_comes_and_goes_all_day_makes_no_large_report(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope", steps=10, stages={"forward": 100_000.0}, lag={"data": 1.0},
                    gpu={"gpu.util": 0.9, "gpu.clock_sm": 1500, "gpu.power": 300,
                         "gpu.throttle": lambda k: 4 * (k % 2)}, device={"forward": 90_000.0})
    with Run.open(path) as run:
        told = page(run)
    assert len(told["charts"]) == 3 and told["throttling"]["rows"][0][0] == "power cap (software)"
    for chart in told["charts"]:
        assert 1 <= chart["picture"].count('class="band"') <= 2 * BANDS
    assert len(told["throttling"]["spans"]) == 1


def test_throttled_times_are_listed_with_their_share(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run.stepscope", steps=200, stages={"forward": 100.0}, lag={"data": 1.0},
                    device={"forward": 90.0},
                    gpu={"gpu.util": 0.9, "gpu.throttle": lambda k: 0x40 if 50 <= k < 80 else 0})
    with Run.open(path) as run:
        text = html.render(run).replace("\u00a0", " ")
    assert '<td>thermal (hardware)</td><td class="number">1</td><td class="number">3.0 s</td>' in text
    assert "00:05 to 00:08" in text and '<td class="number">15.0 %</td>' in text
    with Run.open(make_run(tmp_path / "calm.stepscope", gpu={"gpu.throttle": 1.0})) as run:
        assert "<h2>Throttling" not in html.render(run)
