"""The one window: menus, rail, screens, status bar. Its frame is painted first; screens come after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from app import actions, theme
from app.run_events import RunEvents
from app.selection import Selection
from app.settings import Settings, on_screen
from app.tokens import MENU_BAR
from app.widgets.basic import Surface, row
from app.widgets.button import Button
from app.widgets.notice import Notice
from app.widgets.rail import Rail
from app.widgets.status_bar import StatusBar

if TYPE_CHECKING:  # also Qt's classes of which only the name is needed: each costs the first paint a little
    from PySide6.QtGui import (
        QCloseEvent,
        QDragEnterEvent,
        QDropEvent,
        QKeyEvent,
        QPaintEvent,
        QResizeEvent,
    )

    from app.document import Document
    from app.recorder import Recorder

SIZE = QSize(1600, 1000)
MINIMUM = QSize(960, 600)
OF_SCREEN = ("diagnose", "timeline")  # their actions are named after them


class MainWindow(RunEvents):
    """Screens are made when they are first shown; nothing slow is imported before the first paint."""

    filled = Signal()  # the first screen, the document and the recorder are there
    launch_requested = Signal(object)  # LaunchSpec

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.settings = settings or Settings()
        self.document: Document | None = None
        self.recorder: Recorder | None = None
        self.selection = Selection(self)
        self.screens: dict[str, QWidget] = {}
        self.current = "launch"
        self._painted = False
        self._file: str | None = None
        self.setWindowTitle("StepScope")
        self.setMinimumSize(MINIMUM)
        self.setAcceptDrops(True)
        self.rail = Rail(actions.SCREENS)
        self.stack = QStackedWidget()
        self.status = StatusBar()
        self.notice = Notice()
        body = Surface("raised")
        body.box.addLayout(row(self.rail, self.stack, spacing=0), 1)
        body.box.addWidget(self.notice)
        body.box.addWidget(self.status)
        self.setCentralWidget(body)
        self.menuBar().setFixedHeight(MENU_BAR)
        self.palette_field = Button(
            "Commands, runs, settings", kind="palette", icon="search", key="Ctrl+Shift+P"
        )
        self.palette_field.setFixedWidth(320)
        self.palette_field.setAccessibleName("Command palette")
        corner = self._corner = QWidget(self.menuBar())  # the menu bar does not keep it alive
        corner.setLayout(row(self.palette_field, margins=(0, 4, 0, 4)))
        self.menuBar().setCornerWidget(corner)
        self.actions_by_name, self.menus = actions.build(self, self.perform)
        self.palette_field.clicked.connect(self.show_palette)
        self.rail.chosen.connect(self.show_screen)
        self.rail.keys_wanted.connect(self.show_keys)
        self.rail.choose("launch")
        self.launch_requested.connect(self._launch)
        self._mark_theme()
        self._update_actions()
        self._restore_geometry()
        self.stack.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.stack.setFocus()  # no ring before the user has pressed a key

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self._fill)

    def _fill(self) -> None:
        """What the frame holds, one piece at a time, so that the window answers in between."""
        self.show_screen(self.current)
        QTimer.singleShot(0, self._connect_run)

    def _connect_run(self) -> None:
        from app.document import Document
        from app.recorder import Recorder

        self.document = Document(self)
        self.recorder = Recorder(self)
        self.document.opened.connect(self._on_opened)
        self.document.closed.connect(self._on_closed)
        self.document.closed.connect(self.selection.clear)
        self.document.grew.connect(self._on_grew)
        self.document.ended.connect(self._ask_facts)
        self.document.failed.connect(self.tell)
        self.recorder.started.connect(self._on_started)
        self.recorder.finished.connect(self._on_finished)
        self.recorder.failed.connect(self._on_failed)
        self.recorder.told.connect(self._on_told)
        self.recorder.state_changed.connect(lambda _state: self._update_actions())
        if self.current != "launch":
            self.show_screen(self.current)
        if self._file is not None:
            self.open_path(self._file)
        self.filled.emit()

    def open_later(self, path: str) -> None:
        """Open a file as soon as the window is there."""
        self._file = str(Path(path).absolute())
        self.current = "live"
        if self.document is not None:
            self.open_path(self._file)

    def show_screen(self, name: str) -> None:
        """Bring a screen to the front, making it the first time."""
        from app import panels

        self.current = name
        self.rail.choose(name)
        widget = self.screens.get(name)
        if widget is None:
            widget = panels.make(name, self)
            if widget is None:  # it needs the document, which is on its way
                return
            self.screens[name] = widget
            self.stack.addWidget(widget)
        self.stack.setCurrentWidget(widget)
        self._update_actions()

    def perform(self, name: str) -> None:
        """Do the action of that name."""
        kind, _, what = name.partition(":")
        if kind == "show":
            self.show_screen(what)
        elif kind == "theme":
            self.set_theme(what)
        elif kind in OF_SCREEN:
            self.ask(kind, what)
        else:
            getattr(self, name)()

    def set_theme(self, mode: str) -> None:
        """system, light or dark; remembered."""
        self.settings.theme = mode
        app = QApplication.instance()
        if isinstance(app, QApplication):
            theme.apply(app, mode)
        self._mark_theme()

    def _mark_theme(self) -> None:
        for mode in theme.MODES:
            self.actions_by_name[f"theme:{mode}"].setChecked(mode == theme.mode())

    @property
    def recording(self) -> bool:
        return self.recorder is not None and self.recorder.active

    def _update_actions(self) -> None:
        recording, live = self.recording, self.current == "live"
        diagnose, timeline = self.current == "diagnose", self.current == "timeline"
        has_run = self.document is not None and self.document.path is not None
        for name, enabled in {
            "stop": recording,
            "mark": (recording and live) or (timeline and has_run),
            "trace": recording and live,
            "pause_view": live and has_run,
            "toggle_output": live,
            "fit": (live or timeline) and has_run,
            "verify": (live or diagnose) and has_run,
            **{name: screen == self.current and has_run for name in self.actions_by_name
               if (screen := name.partition(":")[0]) in OF_SCREEN},
            "copy_moment": live and has_run,
            "close_run": has_run and not recording,
            "export_report": has_run and not recording,
            "show_run_folder": has_run,
            "watch": not recording,
            "start_tour": not recording,
            "run": self._can_run(),
            "search_workloads": self.current == "launch",
            "reset_form": self.current == "launch",
            "copy_command": "launch" in self.screens,
        }.items():
            self.actions_by_name[name].setEnabled(enabled)
        launch: Any = self.screens.get("launch")
        if callable(show := getattr(launch, "show_recording", None)):
            show(recording)

    def _restore_geometry(self) -> None:
        screens = [QGuiApplication.primaryScreen(), *QGuiApplication.screens()]
        areas = [screen.availableGeometry() for screen in screens if screen is not None]
        wanted = self.settings.geometry
        if wanted is None and areas:
            wanted = QRect(areas[0].topLeft(), SIZE.boundedTo(areas[0].size()))
            wanted.moveCenter(areas[0].center())
        if wanted is not None:
            self.setGeometry(on_screen(wanted, areas))
        if self.settings.get("maximized") in (True, "true"):
            self.showMaximized()

    def _mnemonics(self, shown: bool) -> None:
        """The letters of the menus are underlined, and work, while Alt is held."""
        for name, menu in self.menus.items():
            menu.setTitle(f"&{name}" if shown else name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Alt:
            self._mnemonics(True)
        super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Alt:
            self._mnemonics(False)
        super().keyReleaseEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= 1100
        self.palette_field.setFixedWidth(320 if wide else 208)
        self.palette_field.setText("Commands, runs, settings" if wide else "Commands")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if files:
            self.open_path(files[0])

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.recording and not self.confirm_close():
            event.ignore()
            return
        self.settings.set("maximized", self.isMaximized())
        if not self.isMaximized() and not self.isFullScreen():
            self.settings.geometry = self.geometry()
        self.hide()  # what runs may take seconds to end
        self.shut_down()
        event.accept()

    def shut_down(self) -> None:
        """End the recorder and every helper process. Called twice without harm."""
        for screen in self.screens.values():
            if callable(end := getattr(screen, "shut_down", None)):
                end()
        self.end_helpers()
        if self.recorder is not None:
            self.recorder.shutdown()
        if self.document is not None and callable(end := getattr(self.document, "shutdown", None)):
            end()
        self.settings.sync()
