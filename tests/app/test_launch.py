"""Launch: what Run starts, why it cannot, my script with its Python, preflight and recent runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.panels.launch_script import plain
from app.preflight import Check, Preflight, parse
from app.python import Python
from app.spec import LaunchSpec
from profiler.catalog import Gpu, Machine
from tests.app.windows import DOCTOR, doctor, open_window


@pytest.fixture
def window(
    qtbot: QtBot, dark: None, monkeypatch: pytest.MonkeyPatch, settings_file: Path
) -> Iterator[MainWindow]:
    window = open_window(qtbot, monkeypatch, settings_file)
    window.launch_requested.disconnect()  # nothing is started here
    yield window
    window.shut_down()


@pytest.fixture
def launch(window: MainWindow) -> Any:
    return window.screens["launch"]


def started(qtbot: QtBot, window: MainWindow) -> LaunchSpec:
    with qtbot.waitSignal(window.launch_requested) as asked:
        qtbot.keyClick(window, Qt.Key.Key_F5)
    return asked.args[0]


def test_run_starts_what_the_form_says(window: MainWindow, launch: Any, qtbot: QtBot) -> None:
    launch.show_workload("language_model")
    launch.workload.form.set_values({"steps": 12, "workers": 2, "run_name": "two workers"})
    launch.workload._on_changed("steps")
    launch.capture.levels["traces"].click()
    launch.capture.rate.set_value(100.0)
    spec = started(qtbot, window)
    assert (spec.workload, spec.name, spec.capture, spec.rate_hz) == (
        "language_model",
        "two workers",
        "traces",
        100.0,
    )
    assert spec.settings["steps"] == 12 and spec.settings["workers"] == 2
    assert spec.trace_every_s
    assert launch.gallery.current() == "language_model"


def test_an_error_disables_run_and_names_the_field(window: MainWindow, launch: Any, qtbot: QtBot) -> None:
    field = launch.workload.form.fields["batch_size"]
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field.lineEdit(), "0")
    assert not launch.panes.run_button.isEnabled()
    assert not window.actions_by_name["run"].isEnabled()
    assert launch.panes.estimate.whole_text() == "Batch size: 1 or more"
    assert launch.panes.run_button.accessibleDescription() == "Batch size: 1 or more"
    field.selectAll()
    qtbot.keyClicks(field.lineEdit(), "4")
    assert launch.panes.run_button.isEnabled() and window.actions_by_name["run"].isEnabled()


def test_the_command_line_is_that_of_a_terminal(launch: Any) -> None:
    launch.workload.form.set_values({"workers": 1, "run_name": "a b"})
    launch.workload._on_changed("workers")
    words = shlex.split(launch.command_line())
    assert words[:2] == ["stepscope", "record"]
    assert "--control" not in words and "workers=1" in words and "--name=a b" in words
    launch.copy_command()
    assert QGuiApplication.clipboard().text() == launch.command_line()


def test_run_waits_for_what_the_machine_lacks(window: MainWindow, launch: Any, qtbot: QtBot) -> None:
    launch.show_workload("language_model")
    launch.workload.form.set_values({"precision": "tf32"})
    launch.workload._on_changed("precision")
    qtbot.waitUntil(lambda: bool(launch.preflight.checks) and not launch.preflight.busy)
    assert launch.panes.run_button.isEnabled()  # this doctor does not tell which GPUs there are
    launch.preflight.machine = Machine(())
    launch.preflight.changed.emit()
    assert not launch.panes.run_button.isEnabled()
    assert launch.panes.estimate.whole_text().startswith("Precision: tf32 needs a GPU")


def test_own_data_is_looked_at_as_typed(launch: Any, qtbot: QtBot, tmp_path: Path) -> None:
    launch.show_workload("image_classification")
    field, button = launch.workload.form.fields["run_data"], launch.panes.run_button

    def typed(path: Path) -> None:
        field.clear()
        qtbot.keyClicks(field, str(path))

    (tmp_path / "notes.doc").write_text("no image")
    typed(tmp_path / "absent")
    assert not button.isEnabled() and "no such file" in launch.reason()
    typed(tmp_path)
    qtbot.waitUntil(lambda: "there are no files" in launch.reason())
    assert not button.isEnabled() and ".jpeg" in launch.workload.form.hints["run_data"].text()
    (tmp_path / "a.jpg").write_bytes(b"\xff")
    launch.workload._on_changed("run_data")
    qtbot.waitUntil(button.isEnabled)
    typed(tmp_path / "a.jpg")
    qtbot.waitUntil(lambda: "Not a directory" in launch.reason())
    launch.show_workload("language_model")
    assert button.isEnabled()
    launch.show_workload("image_classification")
    qtbot.waitUntil(lambda: "Not a directory" in launch.reason())


def test_search_narrows_the_gallery(launch: Any, qtbot: QtBot) -> None:
    def shown() -> list[str]:
        model = launch.gallery._model
        return [model.index(i, 0).data() for i in range(model.rowCount())]

    everything = shown()
    launch.search()
    qtbot.keyClicks(launch.gallery.field, "decoder")
    assert shown() == ["Language", "Language model"]
    launch.gallery.field.clear()
    assert shown() == everything
    launch.gallery._fold(launch.gallery._groups["Language"])
    assert "Language model" not in shown() and "Language" in shown()


def test_arrows_walk_through_workloads(launch: Any, qtbot: QtBot) -> None:
    before = launch.workload.info.name
    launch.gallery.list.setFocus()
    qtbot.keyClick(launch.gallery.list, Qt.Key.Key_Down)
    assert launch.workload.info.name != before
    assert launch.gallery.current() == launch.workload.info.name


def test_tab_goes_through_the_form_to_run(window: MainWindow, launch: Any, qtbot: QtBot) -> None:
    window.activateWindow()
    launch.show_workload("language_model")
    first = next(iter(launch.workload.form.fields.values()))
    qtbot.waitUntil(first.isVisible)
    launch.workload.reset_button.setFocus()
    reached = []
    for _ in range(60):
        qtbot.keyClick(window.focusWidget() or window, Qt.Key.Key_Tab)
        reached.append(window.focusWidget())
        if reached[-1] is launch.panes.run_button:
            break
    assert reached[0] in (first, first.focusProxy())
    fields = list(launch.workload.form.fields.values())
    met = [fields.index(w) for w in reached if w in fields]
    assert met == sorted(met) and len(met) >= 8
    assert reached[-1] is launch.panes.run_button


def test_my_script_runs_with_the_chosen_python(
    window: MainWindow, launch: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("")
    window.show_script()
    assert launch.mode == "script" and not launch.panes.run_button.isEnabled()
    page = launch.script
    page.pythons.found = {
        "/opt/good/bin/python": Python("/opt/good/bin/python", "3.12.1", "2.9.0"),
        "/usr/bin/python9": Python("/usr/bin/python9", "3.9.2"),
    }
    page.form.set_values(
        {
            "command": "python train.py",
            "arguments": "--data 'a b'",
            "cwd": str(tmp_path),
            "interpreter": "/usr/bin/python9",
        }
    )
    page._on_changed("command")
    state, sentence = page.interpreter_state()
    assert state == "error" and plain(sentence) == "No torch here." and "/opt/good/bin/python" in sentence
    assert not launch.panes.run_button.isEnabled()
    page.form.hints["interpreter"].link.emit("/opt/good/bin/python")  # the remedy
    assert page.interpreter_state() == ("", "Python 3.12.1, torch 2.9.0")
    spec = started(qtbot, window)
    assert spec.command == ("/opt/good/bin/python", "train.py", "--data", "a b")
    assert spec.cwd == tmp_path
    assert window.settings.texts("launch/commands") == ["python train.py"]


def test_watching_takes_a_process_or_nothing(window: MainWindow, launch: Any, qtbot: QtBot) -> None:
    launch.show_mode("watch")
    assert started(qtbot, window).watch
    launch.watch.form.set_values({"pid": "0x1"})
    launch.watch._on_changed("pid")
    assert "whole number" in launch.reason()
    assert launch.capture.levels["traces"].isHidden()
    assert launch.spec().capture == "light"


def test_preflight_shows_the_doctors_rows(launch: Any, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: bool(launch.preflight.checks))
    names = [
        launch.checks._rows.itemAt(i).widget().accessibleName() for i in range(launch.checks._rows.count())
    ]
    assert names == [f"{row['name']}: {row['state']}, {row['text']}" for row in DOCTOR]
    assert launch._machine.text() == "This machine, no GPU"


def test_the_machine_is_named_by_its_gpus(launch: Any, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: bool(launch.preflight.checks) and not launch.preflight.busy)
    gpus = [Check(f"GPU {i}", "ok", "NVIDIA H200, 140.4 GiB, driver 570.86") for i in range(2)]
    launch.preflight.checks = [*gpus, Check("GPU counters", "absent", "not told")]
    with qtbot.waitSignal(launch.machine_known) as told:
        launch.preflight.changed.emit()
    assert told.args == ["NVIDIA H200, 140.4 GiB, driver 570.86 and 1 more", True]
    assert launch._machine.text() == "This machine, NVIDIA H200 and 1 more"


def test_the_doctors_answer_is_read(qtbot: QtBot) -> None:
    preflight = Preflight(doctor(DOCTOR, [{"name": "NVIDIA H200", "compute_capability": 9.0}]))
    with qtbot.waitSignal(preflight.changed, check_params_cb=lambda: not preflight.busy):
        preflight.ask()
    assert [check.name for check in preflight.checks] == [row["name"] for row in DOCTOR]
    assert preflight.machine == Machine((Gpu("NVIDIA H200", 9.0),))


def test_a_doctor_that_fails_is_told_and_old_rows_are_not_lost(qtbot: QtBot) -> None:
    preflight = Preflight([sys.executable, "-S", "-c", "import sys; sys.exit('no doctor today')"])
    preflight.ask()
    qtbot.waitUntil(lambda: not preflight.busy)
    assert preflight.error == "no doctor today"
    missing = Preflight(["/no/such/program"])
    missing.ask()
    qtbot.waitUntil(lambda: not missing.busy)
    assert missing.error
    with pytest.raises(ValueError):
        parse(b'{"rows": 3}')


def test_a_narrow_window_folds_the_right_pane(window: MainWindow, launch: Any, qtbot: QtBot) -> None:
    window.resize(1600, 900)
    qtbot.waitUntil(lambda: launch.checks.isVisible())
    window.resize(1000, 700)
    qtbot.waitUntil(lambda: launch.panes.tab_strip.isVisible())
    assert not launch.checks.isVisible() and launch.panes.run_button.isVisible()
    launch.check_machine()
    assert launch.checks.isVisible()
    window.resize(1600, 900)
    qtbot.waitUntil(lambda: not launch.panes.tab_strip.isVisible())
    assert launch.checks.isVisible() and launch.workload.isVisible() and launch.panes.run_button.isVisible()


def test_run_waits_while_something_is_recorded(
    window: MainWindow, launch: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    button = launch.panes.run_button
    assert button.isEnabled() and window.recorder is not None
    command = (sys.executable, "-c", "import time; time.sleep(60)")
    window._launch(LaunchSpec(command=command, output=tmp_path / "r.stepscope"))
    assert not button.isEnabled() and "recording" in button.toolTip()
    window.recorder.stop()
    qtbot.waitUntil(button.isEnabled)
