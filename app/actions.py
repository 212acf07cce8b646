"""Every action of the window: its menu, text, key, and the name of the slot that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence

SCREENS = (
    ("launch", "Launch"),
    ("live", "Live"),
    ("diagnose", "Diagnose"),
    ("timeline", "Timeline"),
    ("compare", "Compare"),
    ("reports", "Reports"),
)


if TYPE_CHECKING:
    from PySide6.QtWidgets import QMainWindow, QMenu


@dataclass(frozen=True)
class Entry:
    """An action. `name`: the window's method that does it, or `show:` a screen, `theme:` a mode, or
    `diagnose:` or `timeline:` what that screen does.

    With `local` the key belongs to the screen, which listens to it itself.
    """

    menu: str
    name: str
    text: str
    key: str = ""
    icon: str = ""
    line_before: bool = False
    checkable: bool = False
    local: bool = False


_SCREEN_ENTRIES = tuple(
    Entry("View", f"show:{name}", title, f"Ctrl+{i}", name) for i, (name, title) in enumerate(SCREENS, 1)
)

ENTRIES = (
    Entry("File", "open_file", "Open run file…", "Ctrl+O", "folder"),
    Entry("File", "open_runs_folder", "Show the folder of runs", "", "folder"),
    Entry("File", "close_run", "Close run", "Ctrl+W", "close"),
    Entry("File", "export_report", "Export report…", "Ctrl+Shift+E", "export", line_before=True),
    Entry("File", "close", "Quit", "Ctrl+Q", "", line_before=True),
    Entry("Edit", "copy_command", "Copy command line", "Ctrl+Shift+C", "copy"),
    Entry("Edit", "copy_moment", "Copy the values at the crosshair", "C", "copy", local=True),
    Entry("Edit", "search_workloads", "Search workloads", "/", "search"),
    Entry("Edit", "reset_form", "Reset settings of the workload", "", "reset"),
    *_SCREEN_ENTRIES,
    Entry("View", "go_back", "Back to the former selection", "Alt+Left", "", line_before=True),
    Entry("View", "go_forward", "Forward to the next selection", "Alt+Right", ""),
    Entry("View", "toggle_output", "Output", "Ctrl+J", "terminal", line_before=True),
    Entry("View", "pause_view", "Pause view", "Space", "pause"),
    Entry("View", "fit", "Fit the whole run", "F", "grid", local=True),
    Entry("View", "timeline:focus_search", "Search spans", "Ctrl+F", "search", line_before=True, local=True),
    Entry("View", "timeline:zoom_in", "Zoom in", "W", "plus", local=True),
    Entry("View", "timeline:zoom_out", "Zoom out", "S", "minus", local=True),
    Entry("View", "timeline:pan_left", "Move to earlier times", "A", "", local=True),
    Entry("View", "timeline:pan_right", "Move to later times", "D", "", local=True),
    Entry("View", "timeline:next_step", "Choose the next step", ".", "", local=True),
    Entry("View", "timeline:previous_step", "Choose the step before", ",", "", local=True),
    Entry("View", "timeline:choose_span_as_region", "Region of the selected span", "R", "", local=True),
    Entry("View", "timeline:pin", "Pin the lane of the selected span", "P", "follow", local=True),
    Entry("View", "theme:system", "Theme of the system", "", "theme", line_before=True, checkable=True),
    Entry("View", "theme:light", "Light theme", "", "theme", checkable=True),
    Entry("View", "theme:dark", "Dark theme", "", "theme", checkable=True),
    Entry("Run", "run", "Run", "F5", "launch"),
    Entry("Run", "stop", "Stop", "Shift+F5", "stop"),
    Entry("Run", "mark", "Mark this moment", "M", "mark", line_before=True),
    Entry("Run", "trace", "Trace 8 steps", "T", "camera"),
    Entry("Run", "show_script", "Record my script", "Ctrl+E", "terminal", line_before=True),
    Entry("Run", "watch", "Watch this machine", "", "eye"),
    Entry("Analyze", "verify", "Verify the suggestion", "Ctrl+R", "check"),
    Entry("Analyze", "diagnose:verify_all", "Verify all findings", "Ctrl+Shift+R", "check"),
    Entry("Analyze", "diagnose:ceilings", "Measure ceilings", "", "wave"),
    Entry("Analyze", "diagnose:show_in_timeline", "Show the finding in the timeline", "", "timeline"),
    Entry("Analyze", "diagnose:open_code", "Open the line of code", "", "text"),
    Entry("Analyze", "check_machine", "Check this machine", "", "check"),
    Entry("Analyze", "show_run_folder", "Show the run file in its folder", "", "database"),
    Entry("Window", "show_palette", "Command palette", "Ctrl+Shift+P", "search"),
    Entry("Window", "toggle_full_screen", "Full screen", "F11", "grid"),
    Entry("Window", "reset_layout", "Reset layout", "", "reset"),
    Entry("Help", "start_tour", "Take the tour", "", "bolt"),
    Entry("Help", "show_keys", "Keyboard shortcuts", "?", "keys"),
    Entry("Help", "show_answers", "How often it is right", "", "check"),
    Entry("Help", "about", "About StepScope", "", "info", line_before=True),
)
MENUS = ("File", "Edit", "View", "Run", "Analyze", "Window", "Help")


def build(window: QMainWindow, perform: Callable[[str], None]) -> tuple[dict[str, QAction], dict[str, QMenu]]:
    """The actions by name, in the menus of the window. `perform(name)` does one."""
    menus = {name: window.menuBar().addMenu(name) for name in MENUS}
    actions: dict[str, QAction] = {}
    for entry in ENTRIES:
        action = QAction(entry.text, window)
        action.setData(entry)
        action.setCheckable(entry.checkable)
        if entry.local:
            action.setText(f"{entry.text}\t{entry.key}")
        elif entry.key:
            action.setShortcut(QKeySequence(entry.key))
            action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.triggered.connect(lambda _=False, name=entry.name: perform(name))
        menu = menus[entry.menu]
        if entry.line_before:
            menu.addSeparator()
        menu.addAction(action)
        actions[entry.name] = action
    return actions, menus
