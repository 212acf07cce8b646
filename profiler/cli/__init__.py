"""The command line: one file a command, whose docstring is its help.

A command is a module here that does not start with `_`, with `configure(parser)`
and `run(args) -> int`. Only the chosen one is imported: start-up stays short, and
a server without Qt or torch runs what it can.
"""

from __future__ import annotations

import argparse
import ast
import codecs
import difflib
import importlib
import importlib.util
import io
import os
import sys
from pathlib import Path

from profiler.errors import ProfilerError, UsageError

_FOLDER = Path(__file__).resolve().parent

# What our own texts hold beyond ASCII, where the terminal has no more than that.
_NARROW = {"\u00a0": " ", "\u2212": "-", "\u00d7": "x", "\u2192": "->", "\u00b0": "deg ", "\u00b5": "u"}

# The order of the help. A command that is not named here is listed last.
_GROUPS = (
    ("Record", ("record", "monitor", "workloads", "import", "merge")),
    ("Learn", ("diagnose", "report", "compare")),
    ("Prove", ("verify", "sweep", "ceilings", "matrix", "gate")),
    ("Begin", ("demo", "doctor")),
)


def main(argv: list[str]) -> int:
    """Run the command line `argv` (without the program's name). Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a narrow code page must not end a command
            stream.reconfigure(errors="stepscope")
    try:
        return _main(argv)
    except ProfilerError as error:
        print(f"stepscope: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has left; flushing at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


def _ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start:error.end]
    return "".join(_NARROW.get(c, "?") for c in text), error.end


codecs.register_error("stepscope", _ascii)


def commands() -> dict[str, Path]:
    """Every command's file, by the name that is typed."""
    files = sorted(_FOLDER.glob("*.py"))
    return {path.stem.replace("_", "-"): path for path in files if not path.stem.startswith("_")}


def documentation(path: Path) -> str:
    """The docstring of a command's file, read without importing it."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _main(argv: list[str]) -> int:
    known = commands()
    first = argv[0] if argv else ""
    if first in ("-h", "--help", "help"):
        print(_help(known))
        return 0
    if first == "--version":
        from profiler.version import version

        print(f"stepscope {version()}")
        return 0
    if first in known:
        status = _run_command(first, known[first], argv[1:])
        sys.stdout.flush()
        return status
    if first.startswith("-"):
        raise UsageError(f"unknown option {first}", "See stepscope --help")
    if first and not Path(first).exists():
        raise UsageError(f"neither a command nor a file: {first}", _advice(first, known))
    return _open_window(argv)


def _advice(word: str, known: dict[str, Path]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean stepscope {close[0]}?" if close else "See stepscope --help"


def _run_command(name: str, path: Path, argv: list[str]) -> int:
    module = importlib.import_module(f"profiler.cli.{path.stem}")
    parser = argparse.ArgumentParser(
        prog=f"stepscope {name}", description=module.__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    module.configure(parser)
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed its line
        return stop.code if isinstance(stop.code, int) else 2
    return int(module.run(args) or 0)


def _help(known: dict[str, Path]) -> str:
    docs = {name: documentation(path) for name, path in known.items()}
    shown = {name: doc.partition("\n")[0].rstrip(".") for name, doc in docs.items()
             if not doc.startswith("Internal")}
    width = max(map(len, shown), default=0)
    lines = ["usage: stepscope [FILE ...]            open the window, on run files",
             "       stepscope COMMAND [...]         stepscope COMMAND --help tells more", ""]
    grouped = {name for _, names in _GROUPS for name in names}
    rest = ("More", tuple(name for name in shown if name not in grouped))
    for title, names in (*_GROUPS, rest):
        if there := [name for name in names if name in shown]:
            lines += [title, *(f"  {name:<{width}}  {shown[name]}" for name in there), ""]
    lines += ["  --version  print the version", "  --help     print this"]
    return "\n".join(lines)


def has_display() -> bool:
    """Whether a window can be shown, or Qt was told to draw without one."""
    if not sys.platform.startswith("linux"):
        return True
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return True
    return os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] not in ("", "xcb", "wayland")


def _open_window(files: list[str]) -> int:
    for name in files:
        if not Path(name).exists():
            raise UsageError(f"no such file: {name}")
    if not has_display():
        raise UsageError("there is no display for the window", "Try stepscope demo --headless")
    if importlib.util.find_spec("PySide6") is None:
        raise UsageError("the window needs PySide6, which is not installed",
                            'Run pip install "stepscope[gui]"')
    try:  # by name: the headless part has no import of the desktop
        window = importlib.import_module("app.main")
    except ImportError as error:  # a system library that Qt needs, most often
        raise UsageError(f"the window cannot start: {error}",
                         "stepscope doctor tells what is missing") from error
    return int(window.run(files))
