"""Launch: choose what to run, set it up, see what works on this machine, start."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import recents
from app.panels.launch_capture import CapturePane
from app.panels.launch_gallery import Gallery
from app.panels.launch_panes import LaunchPanes
from app.panels.launch_preflight import PreflightPane
from app.panels.launch_recent import RecentPane
from app.panels.launch_script import ScriptPage, ScriptStrip
from app.panels.launch_watch import WatchPage
from app.panels.launch_workload import Page, WorkloadPage
from app.preflight import Preflight, host
from app.queries import Queries
from app.settings import Settings
from app.spec import LaunchSpec
from app.widgets.basic import label, restyle, row, tip
from app.widgets.button import Segments
from profiler.catalog import check_data, get, workloads
from profiler.errors import UsageError
from profiler.units import format_bytes, format_time

MODES = (("workload", "Workloads"), ("script", "My script"), ("watch", "Watch only"))
FIRST = "input_starved"
TRACE_EVERY_S = 30.0
HELD = "A recording is running; stop it first"


def wrong_data(workload: str, path: Path) -> str:
    """Why a workload cannot use this data of the user's, or nothing."""
    try:
        check_data(workload, path)
    except UsageError as error:
        return error.message
    return ""


class LaunchPanel(QWidget):
    """The screen; it knows no recorder and no run, and asks for both by signals."""

    title = "Launch"
    launch_requested = Signal(object)  # LaunchSpec
    open_requested = Signal(str)
    readiness_changed = Signal(str)  # why it cannot start, "" when it can
    machine_known = Signal(str, bool)  # the device's name, and whether it is a GPU

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._infos = workloads()
        self._runs: list[recents.Recent] = []
        self._recording = False
        self.preflight = Preflight(parent=self)
        self._queries = Queries(self)
        self.modes = Segments(MODES, "workload")
        self.modes.setAccessibleName("What to launch")
        self._machine = label("This machine", "sub")
        last = str(settings.get("launch/workload", FIRST))
        self.gallery = Gallery(self._infos, last if settings.get("launch/workload") else "")
        self.workload, self.script, self.watch = WorkloadPage(), ScriptPage(settings), WatchPage()
        self._pages: dict[str, Page] = {"workload": self.workload, "script": self.script, "watch": self.watch}
        self.strip = ScriptStrip()
        level, rate = settings.get("launch/capture", "trace"), settings.get("launch/rate", 10.0)
        self.checks = PreflightPane(self.preflight)
        self.capture, self.recent = CapturePane(str(level), float(rate)), RecentPane()
        heading = row(
            label("Launch", "name"),
            self.modes,
            None,
            label("Run on", "hint"),
            self._machine,
            spacing=16,
            margins=(16, 0, 16, 0),
        )
        self.panes = LaunchPanes(
            settings,
            heading,
            (self.gallery, self.strip),
            tuple(self._pages.values()),
            (self.checks, self.capture, self.recent),
        )
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.panes)
        self._connect()
        self.show_workload(last if any(info.name == last for info in self._infos) else FIRST)
        QTimer.singleShot(0, self.begin)

    def begin(self) -> None:
        """What takes a moment: the doctor, interpreters, recent runs."""
        self.preflight.ask()
        self.script.begin()
        self.look_for_runs()

    def _connect(self) -> None:
        self.modes.changed.connect(lambda mode: self.show_mode(str(mode)))
        self.preflight.changed.connect(self._on_preflight)
        self.panes.run_button.clicked.connect(self.run)
        self.panes.copy_button.clicked.connect(self.copy_command)
        self.gallery.chosen.connect(self.show_workload)
        self.strip.wanted.connect(lambda: self.show_mode("script"))
        self.strip.use.connect(self.script._use)
        self.recent.open_requested.connect(self.open_requested)
        self.capture.changed.connect(self._refresh)
        self.workload.data_entered.connect(self._look_at_data)
        for page in self._pages.values():
            page.edited.connect(self._refresh)

    # What is shown

    @property
    def mode(self) -> str:
        return str(self.modes.value())

    def show_mode(self, mode: str) -> None:
        """workload, script or watch."""
        self.modes.set_value(mode)
        self.panes.forms.setCurrentWidget(self._pages[mode])
        self.panes.show_tab("form")
        self.gallery.choose(self.workload.info.name if mode == "workload" and self.workload.info else None)
        self.capture.set_signals_only(mode == "watch")
        self._refresh()
        if mode != "workload":
            self._pages[mode].focus_first()

    def show_workload(self, name: str) -> None:
        """The form of a workload."""
        if self.workload.info is None or self.workload.info.name != name:
            self.workload.show_workload(get(name))
        self.show_mode("workload")

    def search(self) -> None:
        """Put the cursor into the search field."""
        self.gallery.field.setFocus()
        self.gallery.field.selectAll()

    def choices(self) -> list[Any]:
        """The workloads, and the settings of the one in view, for the command palette."""
        from app.widgets.palette import Choice

        found = [
            Choice(
                "Workloads", info.title, info.summary, info.icon, "", partial(self.show_workload, info.name)
            )
            for info in self._infos
        ]
        if self.mode == "workload" and self.workload.info is not None:
            found += [
                Choice(
                    "Settings",
                    setting.label,
                    setting.help,
                    "gear",
                    "",
                    partial(self.workload.form.focus, setting.name),
                )
                for setting in self.workload.info.settings
            ]
        return found

    def check_machine(self) -> None:
        """Ask the doctor again, in view."""
        self.panes.show_tab("side")
        self.preflight.ask()

    def reset(self) -> None:
        self._pages[self.mode].reset()

    def reset_layout(self) -> None:
        self.panes.reset_layout()

    # What is started

    def reason(self) -> str:
        """Why it cannot start, or nothing."""
        return self._pages[self.mode].reason()[1]

    def spec(self) -> LaunchSpec:
        """What Run starts."""
        level = "light" if self.mode == "watch" else self.capture.level()
        rate = self.capture.rate_hz()
        return replace(
            self._pages[self.mode].spec(),
            capture=level,  # type: ignore[arg-type]
            trace_every_s=TRACE_EVERY_S if level == "traces" else None,
            rate_hz=rate if rate != 10.0 else None,
        )

    def command_line(self) -> str:
        """The same from a terminal."""
        argv = [word for word in self.spec().argv() if word != "--control"]
        start = next(i for i, word in enumerate(argv) if word in ("record", "monitor"))
        return shlex.join(["stepscope", *argv[start:]])

    def copy_command(self) -> None:
        if not self.reason():
            QGuiApplication.clipboard().setText(self.command_line())

    def run(self) -> None:
        """Start; where a field keeps it from starting, go to that field."""
        field, _ = self._pages[self.mode].reason()
        if field:
            self._pages[self.mode].form.focus(field)
            return
        for key, value in (("capture", self.capture.level()), ("rate", self.capture.rate_hz())):
            self._settings.set(f"launch/{key}", value)
        if self.mode == "script":
            self.script.remember()
        if self.mode == "workload" and self.workload.info is not None:
            self._settings.set("launch/workload", self.workload.info.name)
            self.gallery.set_last_used(self.workload.info.name)
        self.launch_requested.emit(self.spec())

    def _refresh(self) -> None:
        reason = self.reason()
        held = reason or (HELD if self._recording else "")
        self.panes.run_button.setEnabled(not held)
        self.panes.run_button.setToolTip(tip(held))
        self.panes.run_button.setAccessibleDescription(held)
        self.panes.command_text.show_text("" if reason else self.command_line())
        self.panes.copy_button.setEnabled(not reason)
        self.strip.show_script(self.script, self.mode == "script")
        self._show_estimate(reason)
        self.readiness_changed.emit(reason)

    def show_recording(self, recording: bool) -> None:
        """One at a time: while one is recorded, Run waits and says why."""
        if recording != self._recording:
            self._recording = recording
            self._refresh()

    def _show_estimate(self, reason: str) -> None:
        """Time and size, from the last run like this one: nothing is estimated from nothing."""
        name = self.workload.info.name if self.mode == "workload" and self.workload.info else ""
        alike = [run for run in self._runs if name and run.workload == name and run.whole]
        sizes: dict[str, int] = {}
        for run in alike:
            sizes.setdefault(run.capture, run.size)
        self.capture.show_sizes(sizes)
        last = alike[0] if alike and not reason and not self._recording else None
        size = sizes.get(self.capture.level()) if last else None
        self.panes.estimate.show_text(
            reason or (HELD if self._recording else "")
            or (f"{format_time(last.seconds * 1e9)} the last time" if last else "")
        )
        self.panes.size_text.setText(f"run file {format_bytes(size)}" if size else "")
        restyle(self.panes.estimate, tone="err" if reason else "t2")

    # What arrives later

    def look_for_runs(self) -> None:
        """Read the newest runs on the worker thread."""
        paths = recents.newest(also=self._settings.texts("recent"))
        self._queries.submit("recent", lambda: recents.read(paths), self._on_runs)

    def _on_runs(self, runs: list[recents.Recent]) -> None:
        self._runs = runs
        self.recent.show_runs(runs)
        self._refresh()

    def _look_at_data(self, name: str, data: str) -> None:
        """On the worker thread: a folder may be large, or far away."""
        look = partial(wrong_data, name, Path(data).expanduser())
        self._queries.submit("data", look, lambda wrong: self.workload.show_data(name, data, wrong))

    def _on_preflight(self) -> None:
        self.workload.show_machine(self.preflight.machine)
        found = [c for c in self.preflight.checks if re.fullmatch(r"(AMD )?GPU( \d+)?", c.name)]
        if found:
            gpus = [c for c in found if c.state in ("ok", "warning")]
            more = f" and {len(gpus) - 1} more" if len(gpus) > 1 else ""
            name = gpus[0].text.split(",")[0] if gpus else "no GPU"
            self._machine.setText(f"This machine, {name}{more}")
            self.machine_known.emit(f"{gpus[0].text}{more}" if gpus else host(), bool(gpus))

    def shut_down(self) -> None:
        """End every helper process and the worker thread; keep the sizes of the panes."""
        self.panes.keep_layout()
        self.preflight.shut_down()
        self.script.shut_down()
        self._queries.close()
