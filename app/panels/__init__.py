"""The screens of the window, one file a screen; large ones have files beside theirs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.main_window import MainWindow

RUN_SCREENS = ("live", "diagnose", "timeline")


def make(name: str, window: MainWindow) -> QWidget | None:
    """The screen of that name, imported now; None when it needs the document and there is none yet."""
    if name == "launch":
        from app.panels.launch import LaunchPanel

        panel = LaunchPanel(window.settings)
        panel.launch_requested.connect(window.launch_requested)
        panel.open_requested.connect(window.open_path)
        panel.readiness_changed.connect(window.launch_readiness)
        panel.machine_known.connect(window.show_machine)
        return panel
    if name in RUN_SCREENS:
        if window.document is None or window.recorder is None:
            return None
        module = importlib.import_module(f"app.panels.{name}_screen")
        screen: QWidget = getattr(module, f"{name.capitalize()}Screen")(window)
        return screen
    from app.panels import later

    return later.make(name, window)
