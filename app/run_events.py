"""What the window does when a recording starts or ends, and when a run is opened, grows or is closed."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from app.commands import Commands

if TYPE_CHECKING:
    from app.run_facts import RunFacts
    from app.spec import LaunchSpec
    from app.widgets.rail import Rail

DEFAULT_RATE_HZ = 10.0
FACTS_EVERY_S = 1.0


def told_once(text: str) -> str:
    """The lines of an error without those that only say the same again, and a capital in front."""
    kept: list[str] = []
    for line in filter(None, (line.strip().removeprefix("stepscope: ") for line in text.splitlines())):
        if line not in kept:
            kept.append(line)
    said = "\n".join(kept)
    return said[:1].upper() + said[1:]


class RunEvents(Commands):
    """The slots of the document and the recorder."""

    rail: Rail
    _facts_at = 0.0
    _from = "launch"  # the screen that the last recording was started from

    def _launch(self, spec: LaunchSpec) -> None:
        if self.recorder is None or self.recorder.active:
            return
        self._from = self.current
        self.notice.hide()
        self.recorder.start(spec)
        self.rail.items["live"].set_dot(True)
        self.status.show_facts(rate=f"{spec.rate_hz or DEFAULT_RATE_HZ:g} Hz", state="starting")
        self.show_screen("live")

    def _on_started(self, path: Path) -> None:
        self.status.show_facts(state="recording")
        self.open_path(str(path))

    def _on_finished(self, path: Path | None, end: object) -> None:
        self._ended()
        if path is not None:
            self.settings.remember("recent", str(path))

    def _on_failed(self, text: str) -> None:
        self._ended()
        self.tell(told_once(text))
        if self.document is not None and self.document.path is None:
            self.show_screen(self._from)  # where it can be mended

    def _on_told(self, text: str, tone: str) -> None:
        self.tell(told_once(text), tone)

    def _ended(self) -> None:
        self.rail.items["live"].set_dot(False)
        self.status.show_facts(rate="not sampling", state="idle")
        if callable(look := getattr(self.screens.get("launch"), "look_for_runs", None)):
            look()
        self._update_actions()

    def _on_grew(self) -> None:
        if monotonic() - self._facts_at > FACTS_EVERY_S:
            self._ask_facts()

    def _ask_facts(self) -> None:
        from app.run_facts import read_facts

        if self.document is not None:
            self._facts_at = monotonic()
            self.document.query("status", read_facts, self._show_facts)

    def _show_facts(self, facts: RunFacts) -> None:
        from app.run_facts import texts

        self.status.show_facts(device_icon="gpu" if facts.devices else "cpu" if facts.host else "",
                               **texts(facts))

    def _on_opened(self, path: Path) -> None:
        self.setWindowFilePath(str(path))
        self.setWindowTitle(f"{path.stem} - StepScope")
        self._ask_facts()
        self.settings.remember("recent", str(path))
        self._update_actions()

    def _on_closed(self) -> None:
        self.setWindowFilePath("")
        self.setWindowTitle("StepScope")
        self.status.show_facts(run_file="no run file", dropped="", overhead="")
        self._update_actions()
