"""The line of the user's code that a finding names: the lines around it, and how it is opened."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from app.diagnose.data import Code
from profiler.errors import harmless
from profiler.run.reader import Run

BEFORE, AFTER = 2, 1  # lines around it
SOURCES = (".py", ".pyi", ".pyx")  # a run may come from anybody: nothing else is shown or opened
LARGEST = 4_000_000  # bytes
WIDEST = 300  # letters of a line
IN_TERMINAL = ("vi", "vim", "nvim", "nano", "emacs", "micro", "hx", "helix", "joe", "ed", "ex")
LINE_OPTIONS = {"code": ("-g", "{file}:{line}"), "codium": ("-g", "{file}:{line}"),
                "cursor": ("-g", "{file}:{line}"), "subl": ("{file}:{line}",), "zed": ("{file}:{line}",),
                "pycharm": ("--line", "{line}", "{file}"), "kate": ("--line", "{line}", "{file}"),
                "gedit": ("+{line}", "{file}"), "gvim": ("+{line}", "{file}")}


def query(site: str, run: Run) -> Code:
    """Of "file:line"; a relative file is one of the folder that the command ran in."""
    name, _, number = site.rpartition(":")
    line = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
    if not name or not line:
        return Code(site)
    path = Path(name)
    if not path.is_absolute():
        path = Path(str(run.meta.get("cwd") or "")) / path
        if not path.is_absolute():
            return Code(site, note="the run does not tell its folder")
    try:
        if path.suffix not in SOURCES or not path.is_file() or path.stat().st_size > LARGEST:
            return Code(site, note="the file is not on this machine" if not path.is_file() else "")
        lines = path.read_text("utf-8", errors="replace").splitlines()
        changed = bool(run.end_ns) and path.stat().st_mtime_ns > run.end_ns
    except (OSError, ValueError):
        return Code(site, note="the file cannot be read")
    if line > len(lines):
        return Code(site, path, line, note="the file has fewer lines now")
    first = max(1, line - BEFORE)
    around = tuple((n, harmless(lines[n - 1].expandtabs(4))[:WIDEST])
                   for n in range(first, min(len(lines), line + AFTER) + 1))
    return Code(site, path, line, around, "changed since the run" if changed else "")


def editor_command(path: Path, line: int, wanted: str = "") -> list[str]:
    """What opens a file at a line: `wanted`, STEPSCOPE_EDITOR or VISUAL; [] where the system's way is left.

    {file} and {line} in it are filled in; an editor that needs a terminal is not used.
    """
    told = wanted or os.environ.get("STEPSCOPE_EDITOR") or os.environ.get("VISUAL") or ""
    try:
        words = shlex.split(told)
    except ValueError:
        return []
    if not words or Path(words[0]).name in IN_TERMINAL:
        return []
    if not any("{file}" in word for word in words):
        words += LINE_OPTIONS.get(Path(words[0]).stem, ("{file}",))
    return [word.replace("{file}", str(path)).replace("{line}", str(line)) for word in words]
