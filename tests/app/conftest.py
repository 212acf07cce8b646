"""What tests of the window share: no display, a theme, settings of their own; a Qt warning fails the test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from tests.app.desk import Desk, growing
from tests.app.story import Story
from tests.app.timeline_table import Table, import_line

# What is waited for comes within milliseconds, on a busy machine within seconds: the library's limit of five
# fails by chance.
for wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitSignals):
    wait.__kwdefaults__ = {**wait.__kwdefaults__, "timeout": 60_000}  # ms

# What the offscreen platform says about itself, not about us.
HARMLESS = ("This plugin does not support", "propagateSizeHints")


@pytest.fixture(autouse=True)
def _qt_warnings() -> Iterator[None]:
    """A warning of Qt is a mistake of ours: it fails the test in which it came up."""
    told: list[str] = []

    def listen(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if kind not in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg) and not text.startswith(HARMLESS):
            told.append(text)

    previous = qInstallMessageHandler(listen)
    yield
    qInstallMessageHandler(previous)
    assert not told, f"Qt warned: {told}"


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    return ["stepscope-tests", *theme.STYLE]


@pytest.fixture
def dark(qapp: QApplication) -> Iterator[None]:
    """The dark theme; tests leave it as they found it."""
    theme.apply(qapp, "dark")
    yield
    theme.apply(qapp, "dark")


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    return tmp_path / "window.ini"


@pytest.fixture
def desk(qtbot: QtBot, dark: None) -> Iterator[Desk]:
    """A Live panel with what it reads and records with."""
    result = Desk(qtbot)
    yield result
    result.close()


@pytest.fixture
def live(desk: Desk, tmp_path: Path) -> Iterator[Story]:
    """A run that is being recorded, shown on the desk."""
    with growing(desk, tmp_path) as story:
        yield story


@pytest.fixture
def table(qtbot: QtBot, dark: None) -> Iterator[Table]:
    """A Timeline panel with what it reads."""
    result = Table(qtbot)
    yield result
    result.close()


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run made from a trace, as most tests of the timeline show it."""
    return import_line(tmp_path_factory.mktemp("timeline"))
