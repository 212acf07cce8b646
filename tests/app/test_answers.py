"""How often the diagnosis is right, in the window's help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication, QTextTable
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app import theme
from app.widgets.answers import COMMAND, AnswersDialog
from profiler.experiments.matrix.kept import KEPT, read_kept
from profiler.experiments.matrix.run import Result
from tests.experiments.matrix_lines import CONTROL_CASE, fault_case, line


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    lines = [line(fault_case("gc_pauses", "host_bound", "stalls"), "host_bound", ["stalls"]),
             line(CONTROL_CASE, "compute_bound", [])]
    path = tmp_path / "matrix.json"
    path.write_text(json.dumps(Result(lines, 1).to_json()), encoding="utf-8")
    return path


def test_tables_with_machine_and_date(qtbot: QtBot, dark: None, kept: Path) -> None:
    dialog = AnswersDialog(kept=kept)
    qtbot.addWidget(dialog)
    assert dialog.view is not None
    document = dialog.view.document()
    told = json.loads(kept.read_text("utf-8"))
    text = document.toPlainText()
    assert told["date"] in text and told["machine"]["cpu"] in text
    assert "2 of 2 runs of faults and controls bring what they must" in text
    tables = [frame for frame in document.rootFrame().childFrames() if isinstance(frame, QTextTable)]
    assert len(tables) == 3 and all(table.format().border() == 0 for table in tables)
    theme.changed.emit()
    assert document.toPlainText() == text
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == dialog.text


@pytest.mark.parametrize("content", [None, "{", "[]", '{"kind": "matrix"}'])
def test_without_a_result_it_says_how_to_get_one(
    qtbot: QtBot, dark: None, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "matrix.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    dialog = AnswersDialog(kept=path)
    qtbot.addWidget(dialog)
    assert dialog.view is None
    said = " ".join(label.text() for label in dialog.findChildren(QLabel))
    assert COMMAND in said and ("No result" in said or "holds no result" in said)
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == f"{COMMAND} --save {path}"


def test_the_result_that_comes_with_the_program_names_no_place() -> None:
    if not KEPT.exists():
        pytest.skip("no result is kept with this copy")
    read_kept(KEPT)
    text = KEPT.read_text("utf-8")
    assert "hostname" not in text
    for word in text.replace('"', " ").replace("=", " ").split():
        assert not word.startswith("/") and ":\\" not in word, word
