"""The Diagnose screen: what is drawn, and what keys and buttons do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.diagnose.data import CeilingsData, DiagnoseData
from app.selection import Place
from profiler.rules.verdict import diagnose
from profiler.run.reader import Run
from profiler.run.results import append_result
from tests.app import diagnosing
from tests.app.diagnosing import CEILINGS, RESULT, WAIT, Desk, texts
from tests.app.windows import open_window
from tests.runs import make_run

desk, no_score = diagnosing.desk, diagnosing.no_score  # fixtures


def test_the_screen_says_what_the_analysis_says(desk: Desk) -> None:
    told = desk.open()
    panel = desk.panel
    assert panel.verdict.word.text() == told.title == "Input-bound"
    assert told.reason in panel.verdict.reason.text() and told.confidence in panel.verdict.confidence.text()
    assert [card.data for card in panel.left.cards.cards] == list(told.findings)
    assert panel.left.cards.cards[0].chosen and panel.detail.heading.title.text() == desk.finding.heading
    assert panel.left.parts.model_.rows == told.parts
    assert panel.detail.evidence.model_.rows == desk.finding.evidence
    assert panel.detail.counter.model_.rows == desk.finding.counter
    assert panel.left.ruled_out.model_.rows == told.ruled_out
    assert "Remedy: workers 0" in panel.detail.heading.remedy.text()
    assert panel.detail.code.site.whole_text() == "train.py:3"
    assert "not measured" in texts(desk).lower() and panel.detail.measure.isVisible()


def test_arrows_walk_through_the_findings(desk: Desk) -> None:
    told = desk.open()
    cards = desk.panel.left.cards.cards
    assert len(cards) > 1
    cards[0].setFocus()
    desk.qtbot.keyClick(cards[0], Qt.Key.Key_Down)
    assert desk.panel.key == told.findings[1].key and cards[1].chosen and not cards[0].chosen
    assert desk.selection.place == told.findings[1].place
    desk.qtbot.keyClick(cards[1], Qt.Key.Key_Home)
    assert desk.panel.key == told.findings[0].key
    desk.selection.back()
    assert desk.panel.key == told.findings[1].key
    desk.qtbot.mouseClick(cards[0], Qt.MouseButton.LeftButton)
    assert desk.panel.key == told.findings[0].key


def test_a_finding_leads_to_its_place_in_the_timeline(desk: Desk) -> None:
    told = desk.open()
    with desk.qtbot.waitSignal(desk.panel.screen_wanted) as wanted:
        desk.qtbot.keyClick(desk.panel.left.cards.cards[0], Qt.Key.Key_Return)
    assert wanted.args == ["timeline"] and desk.selection.place == told.findings[0].place
    assert told.findings[0].place.range_ns is not None
    with desk.qtbot.waitSignal(desk.panel.screen_wanted):
        desk.panel.detail.heading.timeline.click()


def test_a_growing_run_keeps_the_chosen_finding(desk: Desk) -> None:
    told = desk.open()
    desk.panel.choose(told.findings[1].key)
    desk.panel.show_data(told)
    assert desk.panel.key == told.findings[1].key
    desk.panel.show_data(DiagnoseData("unknown", "Unknown", headline="Nothing", recording=True))
    assert desk.panel.finding is None and desk.panel.detail.heading.title.text() == "Nothing"
    assert not desk.panel.head.verify_all.isEnabled()


def test_another_run_shows_nothing_of_the_former(desk: Desk, tmp_path: Path) -> None:
    desk.open()
    other = make_run(tmp_path / "other.stepscope", stages={"forward": 30.0, "backward": 60.0}, workers=None)
    desk.panel.runner.trouble = "old"
    desk.document.open(other)
    desk.qtbot.waitUntil(
        lambda: desk.panel.data is not None and desk.shown.word != "input_bound", timeout=WAIT)
    assert not desk.panel.progress.isVisible() and "input" not in desk.panel.verdict.word.text().lower()


def test_a_run_that_cannot_be_diagnosed_is_told_on_the_screen(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a broken run")

    monkeypatch.setattr("app.panels.diagnose.query", broken)
    desk.document.open(desk.path)
    desk.qtbot.waitUntil(lambda: "a broken run" in desk.panel.notice.text(), timeout=WAIT)
    assert desk.panel.notice.isVisible() and not desk.panel.body.isVisible()


def test_the_line_of_code_opens_in_the_editor_or_is_copied(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.open()
    opened: list[tuple[str, list[str]]] = []
    monkeypatch.setenv("STEPSCOPE_EDITOR", "ed1tor {file}:{line}")
    monkeypatch.setattr("app.diagnose.editor.QProcess.startDetached",
                        lambda name, args: (opened.append((name, args)), (True, 1))[1])
    desk.panel.detail.code.open.click()
    assert opened == [("ed1tor", [f"{desk.path.parent / 'train.py'}:3"])]
    (desk.path.parent / "train.py").unlink()
    with desk.qtbot.waitSignal(desk.panel.told) as told:
        desk.panel.open_code()
    assert QGuiApplication.clipboard().text() == "train.py:3" and told.args == ["Copied: train.py:3", "info"]
    assert len(opened) == 1


def test_a_narrow_window_shows_one_pane_at_a_time(desk: Desk) -> None:
    desk.open()
    body = desk.panel.body
    assert body.left.isVisible() and body.detail.isVisible() and not body.choice.isVisible()
    desk.panel.resize(1036, 640)
    desk.qtbot.waitUntil(lambda: body.choice.isVisible(), timeout=WAIT)
    assert body.left.isVisible() and not body.detail.isVisible()
    desk.qtbot.mouseClick(body.choice.button(body.detail), Qt.MouseButton.LeftButton)
    assert body.detail.isVisible() and not body.left.isVisible()
    desk.panel.resize(1536, 940)
    desk.qtbot.waitUntil(lambda: body.left.isVisible(), timeout=WAIT)
    assert body.left.width() == pytest.approx(384, abs=40)


@pytest.mark.parametrize("mode", ["dark", "light"])
def test_the_charts_are_drawn_in_both_themes(desk: Desk, qapp: QApplication, mode: str) -> None:
    with Run.open(desk.path) as run:
        remedy = diagnose(run).findings[0].remedy
        assert remedy is not None
    append_result(desk.path, "experiment", RESULT | {"remedy": remedy.to_json()})
    append_result(desk.path, "ceilings", CEILINGS)
    desk.open()
    theme.apply(qapp, mode)
    detail, tokens = desk.panel.detail, theme.tokens()
    assert tokens.dark is (mode == "dark")

    def colours(widget: Any) -> set[str]:
        image: QImage = widget.grab().toImage()
        return {image.pixelColor(QPoint(x, y)).name() for x in range(0, image.width(), 2)
                for y in range(0, image.height(), 2)}

    assert tokens.ok.lower() in colours(detail.ratio) and tokens.acc.lower() in colours(detail.ratio)
    assert tokens.stages["forward"].fill.lower() in colours(detail.step)
    fills = {tokens.stages[stage].fill.lower() for stage in ("data", "other")}
    assert fills <= colours(detail.ceilings)
    assert tokens.stages["data"].fill.lower() in colours(desk.panel.left.cards.cards[0])


def test_bars_end_where_their_values_are(desk: Desk) -> None:
    desk.open()
    chart = desk.panel.detail.ceilings
    assert chart.data == CeilingsData()
    step = desk.panel.detail.step
    desk.panel.detail.step.grab()
    first = step.hints[0][0]
    told = desk.shown.step.lanes[0].spans[0]
    assert first.width() == pytest.approx(step.to_x(told.t1) - step.to_x(told.t0), abs=1)
    ratio = desk.panel.detail.ratio
    assert ratio.low < 1.0 < ratio.high and ratio.to_x(ratio.low) == ratio.plot().left()


def test_the_window_knows_the_actions_of_the_screen(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, settings_file: Path, tmp_path: Path
) -> None:
    window = open_window(qtbot, monkeypatch, settings_file)
    window.show_screen("diagnose")
    actions = window.actions_by_name
    screen: Any = window.screens["diagnose"]
    assert screen.currentWidget() is screen._empty and not actions["diagnose:verify_all"].isEnabled()
    path = make_run(tmp_path / "r.stepscope", data_cpu=4.0)
    window.open_path(str(path))
    window.show_screen("diagnose")
    qtbot.waitUntil(lambda: screen.panel is not None and screen.panel.data is not None, timeout=WAIT)
    own = (f"diagnose:{what}" for what in ("verify_all", "ceilings", "open_code", "show_in_timeline"))
    for name in ("verify", *own):
        assert actions[name].isEnabled()
        window.perform(name)  # nothing can be started again: nothing happens
    assert window.current == "timeline" and isinstance(window.selection.place, Place)
    assert window.selection.place.range_ns is not None
    window.close_run()
    assert window.selection.place.range_ns is None and screen.currentWidget() is screen._empty


def test_another_verdict_of_a_growing_run_must_be_said_twice(desk: Desk) -> None:
    desk.open()
    panel = desk.panel

    def said(word: str) -> DiagnoseData:
        return DiagnoseData(word, word, recording=True)

    panel.show_data(said("warming"))
    assert panel._agreed(said("input_bound"))  # what leads up to a verdict is none
    panel.show_data(said("input_bound"))
    assert panel._agreed(said("input_bound")) and not panel._agreed(said("host_bound"))
    assert panel._agreed(said("host_bound")) and panel._agreed(said("input_bound"))
    assert not panel._agreed(said("sync_bound")) and not panel._agreed(said("host_bound"))
