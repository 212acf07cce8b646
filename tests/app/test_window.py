"""The window: screens and keys, empty states, what is imported when, and what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QAbstractButton, QApplication, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app import theme
from app.actions import ENTRIES, SCREENS
from app.display import check_display
from app.main_window import MainWindow
from app.panels.diagnose import DiagnosePanel
from app.panels.timeline import TimelinePanel
from app.run_events import told_once
from app.settings import Settings, on_screen
from app.spec import LaunchSpec
from app.widgets.empty_state import EmptyState
from profiler.errors import UsageError
from tests.app.windows import open_window

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def window(
    qtbot: QtBot, dark: None, monkeypatch: pytest.MonkeyPatch, settings_file: Path
) -> Iterator[MainWindow]:
    window = open_window(qtbot, monkeypatch, settings_file)
    window.activateWindow()
    yield window
    window.shut_down()


def press(qtbot: QtBot, window: MainWindow, keys: str) -> None:
    combination = QKeySequence(keys)[0]
    qtbot.keyClick(window, combination.key(), combination.keyboardModifiers())


def test_shortcuts_switch_screens(window: MainWindow, qtbot: QtBot) -> None:
    for i, (name, _title) in enumerate(SCREENS, 1):
        press(qtbot, window, f"Ctrl+{i}")
        assert window.current == name
        assert window.stack.currentWidget() is window.screens[name]
        assert window.rail.items[name].isChecked()


def test_the_rail_switches_screens(window: MainWindow) -> None:
    window.rail.items["reports"].click()
    assert window.stack.currentWidget() is window.screens["reports"]


def test_every_action_does_something_and_no_key_is_taken_twice(window: MainWindow) -> None:
    keys = [entry.key for entry in ENTRIES if entry.key]
    assert len(keys) == len(set(keys))
    does = {"diagnose": DiagnosePanel, "timeline": TimelinePanel}
    for entry in ENTRIES:
        kind, _, what = entry.name.partition(":")
        doer = does.get(kind, window)
        assert kind in ("show", "theme") or callable(getattr(doer, what or kind)), entry.name


@pytest.mark.parametrize("name", [name for name, _ in SCREENS if name != "launch"])
def test_empty_screens_say_what_is_missing_and_offer_a_way(window: MainWindow, name: str) -> None:
    window.show_screen(name)
    screen = window.screens[name]
    empty = screen if isinstance(screen, EmptyState) else screen.findChild(EmptyState)
    assert empty is not None
    assert empty.accessibleName() and empty.accessibleDescription()
    buttons = [b for b in empty.findChildren(QAbstractButton) if b.isEnabled()]
    assert buttons and all(button.accessibleName() for button in buttons)


def test_the_tour_asks_for_the_demo(window: MainWindow, qtbot: QtBot) -> None:
    window.launch_requested.disconnect()
    with qtbot.waitSignal(window.launch_requested) as asked:
        window.start_tour()
    spec = asked.args[0]
    assert isinstance(spec, LaunchSpec) and spec.workload == "input_starved"


def test_the_theme_can_be_chosen_and_is_remembered(window: MainWindow, settings_file: Path) -> None:
    window.perform("theme:light")
    assert not theme.tokens().dark
    assert window.actions_by_name["theme:light"].isChecked()
    assert not window.actions_by_name["theme:dark"].isChecked()
    window.settings.sync()
    assert Settings(settings_file).theme == "light"


def test_every_control_has_a_name(window: MainWindow) -> None:
    for name, _ in SCREENS:
        window.show_screen(name)
    nameless = [
        widget
        for widget in window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.isVisibleTo(window)
        and isinstance(widget, QAbstractButton)
        and not (widget.accessibleName() or widget.text())
    ]
    assert not nameless


def test_the_palette_finds_and_runs(window: MainWindow, qtbot: QtBot) -> None:
    window.show_palette()
    palette = window._palette
    assert palette is not None and palette.isVisible()
    qtbot.keyClicks(palette.field, "timeline")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert window.current == "timeline"
    window.show_palette()
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    window.show_palette()
    qtbot.keyClicks(palette.field, "no such thing anywhere")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)  # nothing to run, nothing happens
    assert not palette.isVisible()


def test_letters_typed_into_a_field_are_no_shortcuts(window: MainWindow, qtbot: QtBot) -> None:
    field = window.screens["launch"].gallery.field  # type: ignore[attr-defined]
    field.setFocus()
    qtbot.keyClicks(field, "m t?/ ")
    assert field.text() == "m t?/ "


def test_keys_dialog_lists_every_key(window: MainWindow) -> None:
    window.show_keys()
    dialog = next(w for w in window.findChildren(QWidget) if w.windowTitle() == "Keyboard shortcuts")
    texts = {label.text() for label in dialog.findChildren(QWidget) if hasattr(label, "text")}
    assert {entry.key for entry in ENTRIES if entry.key} <= texts
    dialog.close()


def test_a_file_that_is_no_run_is_told_in_the_window(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.stepscope"
    wrong.write_text("no run")
    window.open_path(str(wrong))
    qtbot.waitUntil(lambda: window.notice.isVisible())
    assert "wrong.stepscope" in window.notice.text()


def test_closing_asks_only_while_something_records(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(MainWindow, "recording", property(lambda self: True))
    monkeypatch.setattr(MainWindow, "confirm_close", lambda self: bool(asked.append(1)))
    assert not window.close() and asked == [1]
    monkeypatch.setattr(MainWindow, "recording", property(lambda self: False))
    assert window.close() and asked == [1]


def test_the_question_can_be_answered(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(box: QMessageBox, text: str) -> int:
        next(b for b in box.buttons() if b.text() == text).click()
        return 0

    for text, expected in (("Stop and close", True), ("Go on recording", False)):
        monkeypatch.setattr(QMessageBox, "exec", lambda box, text=text: answer(box, text))
        assert window.confirm_close() is expected


def test_geometry_is_remembered_and_brought_back_on_screen(
    qtbot: QtBot, dark: None, monkeypatch: pytest.MonkeyPatch, settings_file: Path
) -> None:
    settings = Settings(settings_file)
    settings.geometry = QRect(-5000, 9000, 1000, 700)
    settings.sync()
    window = open_window(qtbot, monkeypatch, settings_file)
    available = QApplication.primaryScreen().availableGeometry()
    assert available.intersects(window.geometry())
    window.shut_down()


def test_on_screen_leaves_what_can_be_seen_and_moves_what_cannot() -> None:
    screens = [QRect(0, 0, 1920, 1080), QRect(1920, 0, 1280, 1024)]
    seen = QRect(2000, 100, 900, 700)
    assert on_screen(seen, screens) == seen
    assert on_screen(seen, screens[:1]) == QRect(510, 190, 900, 700)
    above = QRect(100, -600, 900, 700)  # its title bar cannot be reached
    assert screens[0].contains(on_screen(above, screens))
    huge = on_screen(QRect(9000, 9000, 5000, 4000), screens)
    assert screens[0].contains(huge)
    assert on_screen(seen, []) == seen


def test_a_display_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for display in (":4711", ":4711.0", "", "localhost:4711"):
        monkeypatch.setenv("DISPLAY", display)
        with pytest.raises(UsageError, match="demo --headless"):
            check_display()
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    check_display()


def test_an_error_is_told_once() -> None:
    text = "no such folder. Name one\nstepscope: no such folder. Name one\n\nmore"
    assert told_once(text) == "No such folder. Name one\nmore"


def printed(code: str) -> str:
    """What a fresh Python says that runs `code`."""
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    told = done.stderr.replace("This plugin does not support propagateSizeHints()", "").strip()
    assert not told
    return done.stdout.strip()


def test_the_first_paint_brings_nothing_slow() -> None:
    """pyqtgraph, numpy and the catalog come after the first paint, sqlite3 with the run, torch never."""
    code = """
import sys
from app.display import check_display
from app.main_window import MainWindow
from PySide6.QtWidgets import QApplication
from app import theme
def painted(window):
    slow = {"pyqtgraph", "numpy", "torch", "sqlite3", "profiler.catalog", "profiler.run"}
    print(sorted(slow & set(sys.modules)))
    QApplication.quit()
MainWindow._fill = painted
app = QApplication(["", *theme.STYLE])
theme.apply(app)
window = MainWindow()
window.show()
app.exec()
"""
    assert printed(code) == "[]"


def test_all_screens_together_import_no_torch(tmp_path: Path) -> None:
    code = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from app import theme
from app.actions import SCREENS
from app.display import check_display
from app.main_window import MainWindow
app = QApplication(["", *theme.STYLE])
theme.apply(app)
window = MainWindow()
def look():
    for name, _ in SCREENS:
        window.show_screen(name)
    print(sorted({"torch", "torchvision", "pynvml"} & set(sys.modules)))
    window.close()
    app.quit()
window.filled.connect(lambda: QTimer.singleShot(0, look))
window.show()
app.exec()
"""
    assert printed(code) == "[]"
