"""The Timeline screen on all kinds of runs: without a trace, growing, damaged, empty, hostile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from profiler.cli import main
from profiler.rules.trace.facts import TraceFacts
from tests.app.story import Story
from tests.app.timeline_table import WAIT, Table, first, titles
from tests.cli.test_diagnose_trace import GPU, with_trace
from tests.rules.trace.loops import loop
from tests.runs import START_NS, make_run


def test_a_run_without_a_trace_shows_the_stages_of_the_probe(table: Table, tmp_path: Path) -> None:
    run = make_run(tmp_path / "r.stepscope", steps=40, gpu={"gpu.util": 0.3, "gpu.power": 210.0})
    panel = table.open(run, trace=False)
    table.qtbot.waitUntil(lambda: "Power" in titles(panel), timeout=WAIT)
    assert titles(panel)[:2] == ["Steps", "Stages"] and "Utilization" in titles(panel)
    assert panel.body.notice().startswith("No trace in this run")
    panel.next_step()
    table.settle()
    told = panel.body.side.region
    assert told is not None and not told.verdict  # stages make no verdict of a region
    assert {p.name: p.ns / 1e6 for p in told.parts}["data wait"] == pytest.approx(36.2)
    assert sum(p.ns for p in told.parts) == told.window
    start, end = panel.scene.steps()
    panel.scene.choose_region((int(start[3]), int(end[7])))
    table.settle()
    assert panel.body.side.region.title == "5 steps"
    panel.scene.choose_region((int(start[3]) + 10, int(end[3]) - 10))
    table.settle()
    assert panel.body.side.region.title == "no whole step"


def test_traces_and_the_probe_share_a_clock(table: Table, tmp_path: Path) -> None:
    path = with_trace(tmp_path / "a.stepscope", loop(6, wait_us=400), **GPU)
    panel = table.open(path)
    assert titles(panel)[:4] == ["Steps", "Stages", "Steps, trace", "CPU main"]
    shift = int(panel.scene.model.start[first(panel, "Steps, trace")])
    trace = loop(6, wait_us=400).trace()
    assert shift == trace.base_ns + TraceFacts(trace, what_if=False).found.start[0] - START_NS
    second = first(panel, "Steps, trace") + 1
    start, end = int(panel.scene.model.start[second]), int(panel.scene.model.end[second])
    panel.scene.choose_region((start, end))
    table.settle()
    told = panel.body.side.region
    assert (told.t0, told.t1, told.title) == (start, end, "step #11") and told.verdict == "Input-bound"


def test_a_trace_of_another_clock_is_drawn_where_it_was_stored(table: Table, tmp_path: Path) -> None:
    line = loop(6)
    for event in line.events:
        event["t0"], event["t1"] = event["t0"] - 10**16, event["t1"] - 10**16
    panel = table.open(with_trace(tmp_path / "c.stepscope", line, **GPU))
    assert "does not share the run's clock" in panel.body.notice()
    assert panel.scene.model.traced[0][1] == 0  # with_trace stores it at the start
    assert panel.view.high - panel.view.low < 60e9


def test_names_of_a_trace_are_text(table: Table, tmp_path: Path) -> None:
    hostile = "<img src='x'>&amp;" + "y" * 100_000
    line = loop(6)
    for event in line.events:
        if event["name"] in ("aten::relu", "relu_kernel"):
            event["name"] = hostile
    assert main(["import", str(line.save(tmp_path / "h.json")), "-o", str(tmp_path / "h.stepscope")]) == 0
    panel = table.open(tmp_path / "h.stepscope")
    panel.search("img")
    panel.next_hit(1)
    table.settle()
    assert panel.body.side.details is not None
    for label in panel.findChildren(QLabel):
        assert label.textFormat() == Qt.TextFormat.PlainText and len(label.text()) < 5000
    panel.grab()


def test_a_growing_run_grows_and_keeps_what_is_chosen(table: Table, tmp_path: Path) -> None:
    story = Story(tmp_path / "g.stepscope", cpu_only=True)
    story.writer.set_meta("recorder_pid", os.getpid())
    story.advance(8.0)
    panel = table.open(story.path, trace=False)
    table.qtbot.waitUntil(lambda: len(panel.scene.model) > 0, timeout=WAIT)
    panel.next_step()
    panel.scene.select(first(panel, "Stages") + 2)
    before, text = len(panel.scene.model), panel.scene.model.text(panel.scene.selected)
    start, region = int(panel.scene.model.start[panel.scene.selected]), panel.scene.region
    story.advance(12.0)
    table.qtbot.waitUntil(lambda: len(panel.scene.model) > before, timeout=WAIT)
    model = panel.scene.model
    assert panel.scene.region == region
    assert model.text(panel.scene.selected) == text and model.start[panel.scene.selected] == start
    story.finish(12.0)
    story.writer.close()


def test_a_trace_that_cannot_be_read_is_told(table: Table, tmp_path: Path) -> None:
    path = with_trace(tmp_path / "b.stepscope", loop(), valid=False, **GPU)
    panel = table.open(path, trace=False)
    table.qtbot.waitUntil(lambda: "0.trace.json" in panel.body.notice(), timeout=WAIT)
    assert titles(panel)[:2] == ["Steps", "Stages"]  # the rest is there


def test_a_trace_is_read_when_the_screen_is_looked_at(table: Table, imported: Path) -> None:
    table.panel.hide()
    with table.qtbot.waitSignal(table.document.opened, timeout=WAIT):
        table.document.open(imported)
    table.qtbot.waitUntil(lambda: table.panel._unread, timeout=WAIT)
    table.settle()
    assert not table.panel.helper.running
    table.panel.show()
    table.qtbot.waitUntil(lambda: bool(table.panel.scene.model.traced), timeout=WAIT)
    table.document.close()
    assert not table.panel.helper.running and not table.panel.scene.placed


def test_an_empty_run_says_what_is_missing(table: Table, tmp_path: Path) -> None:
    path = make_run(tmp_path / "e.stepscope", steps=0)
    with table.qtbot.waitSignal(table.document.opened, timeout=WAIT):
        table.document.open(path)
    table.qtbot.waitUntil(lambda: "neither a trace nor steps" in table.panel.body.notice(), timeout=WAIT)
    for do in (table.panel.next_step, table.panel.fit, table.panel.pin, table.panel.mark):
        do()
    table.panel.body.canvas.walk(1, 0)
    table.panel.grab()


def test_a_reader_that_dies_is_told_and_the_rest_works(table: Table, imported: Path) -> None:
    panel = table.open(imported)
    assert panel.helper._process is not None
    panel.helper._process.kill()
    table.qtbot.waitUntil(lambda: panel.body.notice().startswith("The trace cannot be shown"), timeout=WAIT)
    panel.next_step()
    table.settle()
    assert panel.body.side.region is not None
