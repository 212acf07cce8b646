"""The user's own command, from what was typed to the argv that is recorded. Pure."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

_PYTHON = re.compile(r"python(3(\.\d+)?)?(\.exe)?$")


@dataclass(frozen=True)
class Script:
    """What the form of the user's own command says. Empty texts are allowed."""

    command: str = ""
    arguments: str = ""
    interpreter: str = ""
    cwd: str = ""

    @property
    def folder(self) -> Path:
        return Path(self.cwd).expanduser() if self.cwd else Path.cwd()

    def words(self) -> list[str]:
        """Command and arguments as typed. ValueError when a quote is left open."""
        return [*shlex.split(self.command), *shlex.split(self.arguments)]

    def uses_interpreter(self) -> bool:
        """Whether the interpreter of the form is what runs it: not when the command names its own by path."""
        try:
            words = self.words()
        except ValueError:
            return True
        return (
            not words or _names_python(words[0]) or words[0].endswith(".py") or bool(self._beside(words[0]))
        )

    def argv(self) -> tuple[str, ...]:
        """What to record: `python` and scripts get the chosen interpreter, its tools come from beside it."""
        words = self.words()
        if not words:
            return ()
        if _names_python(words[0]):
            return (self.interpreter or words[0], *words[1:])
        if words[0].endswith(".py"):
            return (self.interpreter or "python3", *words)
        return (self._beside(words[0]) or words[0], *words[1:])

    def errors(self) -> dict[str, str]:
        """Field -> reason, for what keeps it from starting."""
        found = {}
        if not self.folder.is_dir():
            found["cwd"] = "no such folder"
        for name, text in (("command", self.command), ("arguments", self.arguments)):
            try:
                shlex.split(text)
            except ValueError:
                found[name] = "a quote is not closed"
        if found.keys() & {"command", "arguments"}:
            return found
        words = self.words()
        if not words:
            found["command"] = "enter a command, for example python train.py"
        elif "cwd" not in found and (reason := self._missing(words)):
            found["command"] = reason
        return found

    def _missing(self, words: list[str]) -> str:
        script = words[0] if words[0].endswith(".py") else ""
        if _names_python(words[0]):
            script = next((w for w in words[1:2] if w.endswith(".py")), "")
        if script:
            return "" if (self.folder / script).is_file() else f"{script} is not in the working directory"
        if _names_python(words[0]) or self._beside(words[0]) or shutil.which(words[0]):
            return ""
        if os.sep in words[0] and (self.folder / words[0]).is_file():
            return ""
        return f"{words[0]} was not found"

    def _beside(self, word: str) -> str:
        """torchrun, accelerate and kin: the one of the chosen interpreter."""
        if os.sep in word or not self.interpreter or os.sep not in self.interpreter:
            return ""
        tool = Path(self.interpreter).expanduser().parent / word
        return str(tool) if tool.is_file() else ""


def _names_python(word: str) -> bool:
    return bool(_PYTHON.fullmatch(word))
