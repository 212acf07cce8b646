"""A run whose names are HTML, shown in the window: nothing takes them for such, no file of ours is read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QLabel, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.actions import SCREENS
from app.widgets.basic import ElidedLabel, tip
from app.widgets.chart_data import Folded
from app.widgets.folded_row import FoldedRow
from app.widgets.form import Hint, Link
from app.widgets.sentence import Part, Sentence
from profiler.run.results import update_meta
from tests.app.windows import open_window
from tests.cli.hostile import hostile_run

ROOT = Path(__file__).resolve().parents[2]
MARK = "<img src='file:///etc/hostname'>"
HOSTILE = f"{MARK}</span><a href='file:///etc/passwd'>all is well</a> & more\nline"


def _taken_for_html(widget: QWidget) -> list[str]:
    """Texts of a widget and all in it that Qt would show as HTML and that hold a mark of ours."""
    found = []
    for one in (widget, *widget.findChildren(QWidget)):
        found += [text for text in (one.toolTip(), one.whatsThis())
                  if GuiQt.mightBeRichText(text) and ("<img" in text or "<a " in text)]
        if isinstance(one, QLabel | QMessageBox) and one.textFormat() != Qt.TextFormat.PlainText:
            found += [one.text()] if "<img" in one.text() or "onerror" in one.text() else []
    return found


def _texts(widget: QWidget) -> str:
    """All that labels show, tool tips and accessible names say."""
    labels = [label.text() for label in widget.findChildren(QLabel)]
    return "\n".join([*labels, *(text for one in widget.findChildren(QWidget)
                                 for text in (one.toolTip(), one.accessibleName()))])


def test_a_tip_is_shown_as_it_is() -> None:
    assert tip("a < b\nand more") == "a < b\nand more"
    assert "<img" not in tip(HOSTILE) and "&lt;img" in tip(HOSTILE) and "<br>line" in tip(HOSTILE)


def test_widgets_with_a_name_as_a_tip(qtbot: QtBot) -> None:
    label, line, row = ElidedLabel(HOSTILE), Sentence(), FoldedRow("Power")
    line.show_parts([Part(HOSTILE * 20)])
    row.set_data(Folded(HOSTILE))
    for widget in (label, line, row):
        qtbot.addWidget(widget)
        widget.resize(60, 20)
        widget.show()
        widget.grab()
        assert widget.toolTip() and not _taken_for_html(widget)


def test_the_window_on_a_hostile_run(qtbot: QtBot, dark: None, monkeypatch: pytest.MonkeyPatch,
                                     tmp_path: Path, settings_file: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_RUNS", str(tmp_path))
    path = hostile_run(tmp_path / "<img src=x onerror=alert(1)>.stepscope")
    for key, value in (("name", HOSTILE), ("workload", {"name": HOSTILE, "settings": {}})):
        update_meta(path, key, value)
    window = open_window(qtbot, monkeypatch, settings_file)
    try:
        window.open_path(str(path))
        qtbot.waitUntil(lambda: HOSTILE.split("\n")[0][:20] in _texts(window), timeout=30_000)
        for name, _ in SCREENS:
            window.show_screen(name)
            window.grab()
            assert not _taken_for_html(window)
    finally:
        window.shut_down()


def _safe(node: ast.expr) -> bool:
    """A text of ours as it stands, or one that went through `tip`."""
    if isinstance(node, ast.IfExp):
        return _safe(node.body) and _safe(node.orelse)
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tip")


def test_every_tool_tip_is_text() -> None:
    seen, wrong = 0, []
    for path in sorted((ROOT / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                    and node.func.attr in ("setToolTip", "setWhatsThis")):
                seen += 1
                if not _safe(node.args[0]):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert seen
    assert wrong == []


def test_only_a_link_of_ours_is_one(qtbot: QtBot) -> None:
    hint = Hint()
    qtbot.addWidget(hint)
    [text] = [label for label in hint.findChildren(QLabel) if label.property("role") == "hint"]
    hint.show_text(HOSTILE, "error")
    assert text.textFormat() == Qt.TextFormat.PlainText
    hint.show_text(Link("No torch here. <a href='x'>Use x</a>"), "error")
    assert text.textFormat() == Qt.TextFormat.RichText
