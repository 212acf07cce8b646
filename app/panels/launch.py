"""Launch: choose what to run, set it up, see what works on this machine, start."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSplitter, QStackedWidget, QWidget

from app import recents
from app.panels.launch_gallery import Gallery
from app.panels.launch_preflight import CapturePane, PreflightPane, RecentPane
from app.panels.launch_script import ScriptPage, ScriptStrip
from app.panels.launch_watch import WatchPage
from app.panels.launch_workload import Page, WorkloadPage
from app.preflight import Preflight
from app.queries import Queries
from app.settings import Settings
from app.spec import LaunchSpec
from app.tokens import RUN_BAR
from app.widgets.basic import ElidedLabel, Hairline, Surface, label, restyle, row, strip
from app.widgets.button import Button, Segments
from profiler.catalog import get, workloads
from profiler.units import format_bytes, format_gib, format_time

MODES = (("workload", "Workloads"), ("script", "My script"), ("watch", "Watch only"))
NARROW = 1280  # of the window; below it the right pane becomes a tab
FIRST = "input_starved"
TRACE_EVERY_S = 30.0


def host() -> str:
    """The machine without a GPU: cores and memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f"{format_gib(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))}, "
    return f"{cores} core{'' if cores == 1 else 's'}, {memory}no GPU"


class LaunchPanel(Surface):
    """The screen; it knows no recorder and no run, and asks for both by signals."""

    title = "Launch"
    launch_requested = Signal(object)  # LaunchSpec
    open_requested = Signal(str)
    readiness_changed = Signal(str)  # why it cannot start, "" when it can
    machine_known = Signal(str, bool)  # the device's name, and whether it is a GPU

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__("raised", parent=parent)
        self._settings = settings
        self._infos = workloads()
        self._runs: list[recents.Recent] = []
        self._narrow: bool | None = None
        self.preflight = Preflight(parent=self)
        self.preflight.changed.connect(self._on_preflight)
        self._queries = Queries(self)
        self.modes = Segments(MODES, "workload")
        self.modes.setAccessibleName("What to launch")
        self.modes.changed.connect(lambda mode: self.show_mode(str(mode)))
        self._machine = label("This machine", "sub")
        heading = row(label("Launch", "name"), self.modes, None, label("Run on", "hint"), self._machine, spacing=16,
                      margins=(16, 0, 16, 0))
        self.box.addWidget(strip(heading, RUN_BAR))
        last = str(settings.get("launch/workload", FIRST))
        self.gallery = Gallery(self._infos, last if settings.get("launch/workload") else "")
        self.workload, self.script, self.watch = WorkloadPage(), ScriptPage(settings), WatchPage()
        self.strip = ScriptStrip()
        self._pages: dict[str, Page] = {"workload": self.workload, "script": self.script, "watch": self.watch}
        self._build_panes()
        self._connect()
        self.show_workload(last if any(info.name == last for info in self._infos) else FIRST)
        QTimer.singleShot(0, self.begin)

    def begin(self) -> None:
        """What takes a moment: the doctor, interpreters, recent runs."""
        self.preflight.ask()
        self.script.begin()
        self.look_for_runs()

    def _build_panes(self) -> None:
        left = Surface("raised")
        left.box.addWidget(self.gallery, 1)
        left.box.addWidget(self.strip)
        self._forms = QStackedWidget()
        for page in self._pages.values():
            self._forms.addWidget(page)
        self.capture = CapturePane(str(self._settings.get("launch/capture", "trace")),
                                   float(self._settings.get("launch/rate", 10.0)))
        self.checks = PreflightPane(self.preflight)
        self.recent = RecentPane()
        inner = Surface("raised")
        for pane in (self.checks, self.capture, self.recent):
            inner.box.addWidget(pane)
        inner.box.addStretch(1)
        self._side = QScrollArea()
        self._side.setWidgetResizable(True)
        self._side.setFrameShape(QFrame.Shape.NoFrame)
        self._side.setWidget(inner)
        self._footer = self._build_footer()
        self._tabs = Segments((("form", "Settings"), ("side", "Preflight and capture")), "form")
        self._tabs.changed.connect(lambda which: self._middle.setCurrentWidget(
            self._side if which == "side" else self._forms))
        self._tab_strip = strip(row(self._tabs, None, margins=(16, 0, 16, 0)), RUN_BAR)
        self._middle = QStackedWidget()
        self._middle.addWidget(self._forms)
        centre = self._centre = Surface("raised")
        centre.box.addWidget(self._tab_strip)
        centre.box.addWidget(self._middle, 1)
        centre.box.addWidget(self._build_command())
        self._right = Surface("raised")
        self.splitter = QSplitter()
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        for pane, least in ((left, 300), (centre, 560), (self._right, 280)):
            pane.setMinimumWidth(least)
            self.splitter.addWidget(pane)
        self.splitter.setStretchFactor(1, 1)
        self.box.addWidget(self.splitter, 1)
        self.reset_layout()
        if (state := self._settings.state("launch/splitter")) is not None:
            self.splitter.restoreState(state)

    def _build_command(self) -> QWidget:
        bar = Surface("raised")
        bar.setFixedHeight(40)
        self._command = ElidedLabel("", "sub")
        self._command.setProperty("mono", "true")
        copy = Button("Copy command", kind="flat", icon="copy")
        copy.clicked.connect(self.copy_command)
        inner = QWidget()
        inner.setLayout(row(self._command, copy, spacing=16, margins=(24, 0, 16, 0)))
        bar.box.addWidget(Hairline())
        bar.box.addWidget(inner, 1)
        return bar

    def _build_footer(self) -> Surface:
        footer = Surface("raised")
        self._estimate = ElidedLabel("", "sub")
        self._size = label("", "sub")
        self._run = Button("Run", kind="primary", icon="launch", key="F5", big=True)
        self._run.clicked.connect(self.run)
        footer.box.addWidget(Hairline())
        line = row(self._estimate, self._size, margins=(16, 16, 16, 12))
        line.setStretch(0, 1)
        footer.box.addLayout(line)
        footer.box.addLayout(row(self._run, margins=(16, 0, 16, 16)))
        return footer

    def _connect(self) -> None:
        self.gallery.chosen.connect(self.show_workload)
        self.strip.wanted.connect(lambda: self.show_mode("script"))
        self.strip.use.connect(self.script._use)
        self.recent.open_requested.connect(self.open_requested)
        self.capture.changed.connect(self._refresh)
        for page in self._pages.values():
            page.edited.connect(self._refresh)

    # What is shown

    @property
    def mode(self) -> str:
        return str(self.modes.value())

    def show_mode(self, mode: str) -> None:
        """workload, script or watch."""
        self.modes.set_value(mode)
        self._forms.setCurrentWidget(self._pages[mode])
        self._tabs.set_value("form")
        self._middle.setCurrentWidget(self._forms)
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

        found = [Choice("Workloads", info.title, info.summary, info.icon, "",
                        lambda name=info.name: self.show_workload(name)) for info in self._infos]
        if self.mode == "workload" and self.workload.info is not None:
            found += [Choice("Settings", setting.label, setting.help, "gear", "",
                             lambda name=setting.name: self.workload.form.focus(name))
                      for setting in self.workload.info.settings]
        return found

    def check_machine(self) -> None:
        """Ask the doctor again, in view."""
        if self._narrow:
            self._tabs.set_value("side")
            self._middle.setCurrentWidget(self._side)
        self.preflight.ask()

    def reset(self) -> None:
        self._pages[self.mode].reset()

    def reset_layout(self) -> None:
        self.splitter.setSizes([432, max(560, self.width() - 880), 448])

    # What is started

    def reason(self) -> str:
        """Why it cannot start, or nothing."""
        return self._pages[self.mode].reason()[1]

    def spec(self) -> LaunchSpec:
        """What Run starts."""
        level = "light" if self.mode == "watch" else self.capture.level()
        rate = self.capture.rate_hz()
        return replace(self._pages[self.mode].spec(), capture=level,  # type: ignore[arg-type]
                       trace_every_s=TRACE_EVERY_S if level == "traces" else None,
                       rate_hz=rate if rate != 10.0 else None)

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
        self._run.setEnabled(not reason)
        self._run.setToolTip(reason)
        self._run.setAccessibleDescription(reason)
        self._command.show_text("" if reason else self.command_line())
        self.strip.show_script(self.script, self.mode == "script")
        self._show_estimate(reason)
        self.readiness_changed.emit(reason)

    def _show_estimate(self, reason: str) -> None:
        """Time and size, from the last run like this one: nothing is estimated from nothing."""
        name = self.workload.info.name if self.mode == "workload" and self.workload.info else ""
        alike = [run for run in self._runs if name and run.workload == name and not run.recording]
        sizes: dict[str, int] = {}
        for run in alike:
            sizes.setdefault(run.capture, run.size)
        self.capture.show_sizes(sizes)
        last = alike[0] if alike and not reason else None
        self._estimate.show_text(reason or (f"{format_time(last.seconds * 1e9)} the last time" if last else ""))
        self._size.setText(f"run file {format_bytes(last.size)}" if last else "")
        restyle(self._estimate, tone="err" if reason else "t2")

    # What arrives later

    def look_for_runs(self) -> None:
        """Read the newest runs on the worker thread."""
        paths = recents.newest(also=self._settings.texts("recent"))
        self._queries.submit("recent", lambda: recents.read(paths), self._on_runs)

    def _on_runs(self, runs: list[recents.Recent]) -> None:
        self._runs = runs
        self.recent.show_runs(runs)
        self._refresh()

    def _on_preflight(self) -> None:
        gpu = next((c for c in self.preflight.checks if c.name.lower() in ("gpu", "nvml", "driver")), None)
        if gpu is not None:
            has_gpu = gpu.state in ("ok", "warning")
            self._machine.setText("This machine" if has_gpu else "This machine, no GPU")
            self.machine_known.emit(gpu.text if has_gpu else host(), has_gpu)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.window().width() < NARROW
        if narrow == self._narrow:
            return
        self._narrow = narrow
        if narrow:
            self._middle.addWidget(self._side)
            self._centre.box.addWidget(self._footer)
        else:
            self._middle.removeWidget(self._side)
            self._right.box.addWidget(self._side, 1)
            self._right.box.addWidget(self._footer)
            self._side.show()
            self._tabs.set_value("form")
        self._middle.setCurrentWidget(self._forms)
        self._tab_strip.setVisible(narrow)
        self._right.setVisible(not narrow)

    def shut_down(self) -> None:
        """End every helper process and the worker thread; keep the sizes of the panes."""
        if not self._narrow:
            self._settings.set("launch/splitter", self.splitter.saveState())
        self.preflight.shut_down()
        self.script.shut_down()
        self._queries.close()
