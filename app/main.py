"""The window's process: the application object, its theme, one main window, the event loop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.display import check_display
from app.main_window import MainWindow
from app.settings import Settings


def run(files: Sequence[str] = (), tour: bool = False) -> int:
    """Open the window, on run files if any; with `tour`, start the tour in it. Returns the exit status.

    UsageError where there is no display that answers.
    """
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        check_display()
        app = QApplication([*sys.argv[:1], *theme.STYLE])
    app.setApplicationName("StepScope")
    app.setApplicationDisplayName("StepScope")
    app.setDesktopFileName("stepscope")
    settings = Settings()
    theme.apply(app, settings.theme)
    window = MainWindow(settings)
    window.show()
    window.filled.connect(partial(_listen, app))
    if files:
        window.open_later(files[0])
    if tour:
        window.filled.connect(lambda: QTimer.singleShot(0, window.start_tour))
    status = app.exec()
    window.hide()
    window.shut_down()
    return status


def _listen(app: QApplication) -> None:
    from app.interrupts import quit_on_signals  # after the first paint

    quit_on_signals(app)
