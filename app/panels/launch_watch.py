"""Watch only: the machine, or a process that runs already."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.panels.launch_workload import Page
from app.spec import LaunchSpec
from profiler.catalog import Setting

_ROWS = (
    Setting(
        "pid",
        "str",
        "",
        "empty: the whole machine, until you stop it",
        "",
        "What to watch",
        None,
        None,
        (),
        "Process id",
    ),
    Setting("run_name", "str", "", "what the run is called in lists", "", "Run", None, None, (), "Name"),
)


class WatchPage(Page):
    """GPU and host signals without starting anything; stages need the probe, which enters at a start."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Watch only", "GPU and host signals of what runs already; no steps, no verdict", parent=parent
        )
        self.form.show_settings(_ROWS, after=self.reset_button)

    def reason(self) -> tuple[str, str]:
        typed = self.form.values()["pid"]
        if not typed:
            return "", ""
        if not typed.isdecimal() or not int(typed):
            return "pid", "Process id: a whole number is needed"
        if sys.platform.startswith("linux") and not Path(f"/proc/{typed}").is_dir():
            return "pid", "Process id: no process has it"
        return "", ""

    def spec(self) -> LaunchSpec:
        values = self.form.values()
        pid = values["pid"]
        return LaunchSpec(watch=True, pid=int(pid) if pid.isdecimal() else None, name=values["run_name"])

    def reset(self) -> None:
        self.form.set_values({"pid": "", "run_name": ""})
        self._on_changed("")

    def _on_changed(self, name: str) -> None:
        field, reason = self.reason()
        errors = {field: reason.partition(": ")[2]} if field else {}
        self.form.show_hints(errors=errors, warnings={}, off={}, notes={})
        self.edited.emit()
