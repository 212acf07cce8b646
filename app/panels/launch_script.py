"""The user's own command: what to run, with which Python, where."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.icons import IconLabel
from app.panels.launch_workload import Page
from app.python import Python, Pythons, candidates
from app.script import Script
from app.settings import Settings
from app.spec import LaunchSpec
from app.widgets.basic import ElidedLabel, Hairline, Surface, chip, label, restyle, row
from app.widgets.fields import mark
from app.widgets.form import Hint, Link
from profiler.catalog import Setting

_ROWS = (
    Setting(
        "command",
        "str",
        "",
        "python train.py, train.py, torchrun train.py",
        "",
        "Command",
        None,
        None,
        (),
        "Command",
    ),
    Setting("arguments", "str", "", "added after the command", "", "Command", None, None, (), "Arguments"),
    Setting("cwd", "path", "", "where the command runs", "", "Command", None, None, (), "Working directory"),
    Setting("interpreter", "str", "", "", "", "Interpreter", None, None, (), "Python"),
    Setting("run_name", "str", "", "what the run is called in lists", "", "Run", None, None, (), "Name"),
)
ASK_AFTER_MS = 400  # after the last key


class ScriptPage(Page):
    """The form of the user's own command."""

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(
            "My script", "any command, unchanged: its output and exit status stay its own", True, parent
        )
        self._settings = settings
        self.pythons = Pythons(self)
        self.pythons.known.connect(self._on_known)
        recent = settings.texts("launch/commands")
        self.form.show_settings(
            _ROWS,
            {"command": [(c, c) for c in recent] or [("", "")], "interpreter": [("", "")]},
            after=self.reset_button,
        )
        for name in ("command", "arguments", "interpreter"):
            self.form.fields[name].setProperty("mono", "true")
        self.form.hints["interpreter"].link.connect(self._use)
        self._ask = QTimer(self)
        self._ask.setSingleShot(True)
        self._ask.setInterval(ASK_AFTER_MS)
        self._ask.timeout.connect(self._ask_pythons)
        self._errors: dict[str, str] = {}
        self.form.set_values(
            {
                "command": recent[0] if recent else "",
                "arguments": str(settings.get("launch/arguments", "")),
                "cwd": str(settings.get("launch/cwd", "") or Path.cwd()),
                "interpreter": str(settings.get("launch/interpreter", "")),
            }
        )
        self._check()

    def begin(self) -> None:
        """Look for interpreters: called when the window stands."""
        self._ask_pythons()

    def script(self) -> Script:
        """What is typed."""
        values = self.form.values()
        return Script(values["command"], values["arguments"], values["interpreter"], values["cwd"])

    def spec(self) -> LaunchSpec:
        script = self.script()
        return LaunchSpec(name=self.form.values()["run_name"], command=script.argv(), cwd=script.folder)

    def remember(self) -> None:
        """Keep the entries for the next start."""
        script = self.script()
        self._settings.remember("launch/commands", script.command)
        for key in ("arguments", "cwd", "interpreter"):
            self._settings.set(f"launch/{key}", getattr(script, key))

    def reason(self) -> tuple[str, str]:
        name = next(iter(self._errors), "")
        return (name, f"{self.form.label_of(name)}: {self._errors[name]}") if name else ("", "")

    def reset(self) -> None:
        best = self.pythons.best()
        self.form.set_values(
            {
                "command": "",
                "arguments": "",
                "cwd": str(Path.cwd()),
                "run_name": "",
                "interpreter": best.path if best else "",
            }
        )
        self._on_changed("")

    def shut_down(self) -> None:
        self.pythons.shut_down()

    def _on_changed(self, name: str) -> None:
        if name in ("cwd", "interpreter"):
            self._ask.start()
        self._check()
        self.edited.emit()

    def _ask_pythons(self) -> None:
        offered = candidates(self.form.values()["cwd"])
        self.pythons.ask(
            [str(Path(self.script().interpreter).expanduser()) if self.script().interpreter else "", *offered]
        )

    def _on_known(self, _python: Python) -> None:
        field: Any = self.form.fields["interpreter"]
        typed = field.value()
        field.clear()
        for path, python in self.pythons.found.items():
            if not python.error:
                field.addItem(path, path)
        if not typed and (best := self.pythons.best()) is not None:
            typed = best.path
        field.set_value(typed)
        self._check()
        self.edited.emit()

    def _use(self, path: str) -> None:
        self.form.set_values({"interpreter": path})
        self._on_changed("interpreter")

    def interpreter_state(self) -> tuple[str, str]:
        """State ("", warning or error) of the chosen Python and the sentence about it."""
        script = self.script()
        if not script.uses_interpreter():
            return "", "not used: the command names its own program"
        if not script.interpreter:
            return "", "looking for Pythons on this machine"
        python = self.pythons.found.get(str(Path(script.interpreter).expanduser()))
        if python is None:
            return "", "asking it for its version"
        best = self.pythons.best()
        if python.error:
            remedy = self._remedy(best)
            return "error", Link(html.escape(python.error) + remedy) if remedy else python.error
        if python.torch:
            return "", f"Python {python.version}, torch {python.torch}"
        if best is not None:
            return "error", Link(f"No torch here.{self._remedy(best)}")
        return "warning", f"Python {python.version} without torch: no steps, only host and GPU signals"

    def _remedy(self, best: Python | None) -> str:
        if best is None:
            return ""
        path, name = html.escape(best.path), html.escape(short(best.path))
        link = f'<a href="{path}" style="text-decoration: none">Use {name}</a>'
        return f" {link} (torch {best.torch})"

    def _check(self) -> None:
        state, sentence = self.interpreter_state()
        errors = self.script().errors()
        warnings = {"interpreter": sentence} if state == "warning" else {}
        if state == "error":
            errors["interpreter"] = sentence
        self._errors = {name: plain(why) for name, why in errors.items()}
        notes = {"interpreter": sentence}
        if not self.script().command:  # nothing is wrong yet, it only has to be typed
            notes["command"] = errors.pop("command", "")
        self.form.show_hints(errors=errors, warnings=warnings, off={}, notes=notes)


def short(path: str) -> str:
    """A path as a user would say it: from the working directory or the home folder."""
    for base, sign in ((Path.cwd(), ""), (Path.home(), "~/")):
        try:
            inside = str(Path(path).relative_to(base))
            if inside != ".":
                return sign + inside
        except ValueError:
            continue
    return path


def plain(text: str) -> str:
    """A sentence without its link."""
    return text.partition(" <a ")[0]


class ScriptStrip(Surface):
    """The user's command at the foot of the gallery; a click, Tab or Ctrl+E leads to its form."""

    wanted = Signal()
    use = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("raised", parent=parent)
        self.box.addWidget(Hairline())
        note = ElidedLabel("any command, unchanged", "hint")
        head = row(
            IconLabel("terminal", "t1", 16),
            label("My script", "title"),
            note,
            chip("Ctrl+E", "key"),
            margins=(16, 8, 16, 4),
        )
        head.setStretch(2, 1)
        self.box.addLayout(head)
        self.command, self.python, self.folder = (
            self._field(name) for name in ("Command", "Python", "Folder")
        )
        self.command.setPlaceholderText("python train.py")
        self.box.addLayout(row(self.command, margins=(16, 0, 16, 8)))
        self.box.addLayout(row(self.python, self.folder, margins=(16, 0, 16, 8)))
        self.hint = Hint()
        self.hint.link.connect(self.use)
        self.hint.setContentsMargins(16, 0, 16, 8)
        self.box.addWidget(self.hint)

    def _field(self, name: str) -> QLineEdit:
        field = QLineEdit()
        field.setReadOnly(True)
        field.setProperty("mono", "true")
        field.setAccessibleName(f"My script: {name}")
        field.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        field.installEventFilter(self)
        return field

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseButtonPress and isinstance(event, QMouseEvent):
            self.wanted.emit()
            return True
        return False

    def show_script(self, page: ScriptPage, chosen: bool) -> None:
        """What the form says."""
        script = page.script()
        self.command.setText(" ".join(part for part in (script.command, script.arguments) if part))
        self.python.setText(short(script.interpreter) if script.interpreter else "")
        self.folder.setText(short(script.cwd) if script.cwd else "")
        for field in (self.command, self.python, self.folder):
            field.setCursorPosition(0)
        state, sentence = page.interpreter_state()
        mark(self.python, state)
        self.hint.show_text(sentence, state)
        restyle(self, surface="sel" if chosen else "raised")
