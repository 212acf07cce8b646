"""The command line: one file a command, whose docstring is its help.

A command is a module here that does not start with `_`, with `configure(parser)`
and `run(args) -> int`. Only the chosen one is imported: start-up stays short, and
a server without Qt or torch runs what it can. Where it has `TAKES_COMMAND = True`,
what follows -- is no argument of it, but `args.command`: a list, empty without one.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import errno
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

from profiler.cli import _streams
from profiler.errors import ProfilerError, UsageError

_FOLDER = Path(__file__).resolve().parent

# The order of the help. A command that is not named here is listed last.
_GROUPS = (
    ("Record", ("record", "monitor", "workloads", "import", "merge")),
    ("Learn", ("diagnose", "report", "compare")),
    ("Prove", ("verify", "sweep", "ceilings", "matrix", "gate")),
    ("Begin", ("demo", "doctor")),
)


def main(argv: list[str]) -> int:
    """Run the command line `argv` (without the program's name). Returns the exit status."""
    try:
        _streams.prepare()
        status = _main(argv)
        sys.stdout.flush()
        return status
    except ProfilerError as error:
        _streams.say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has left
        _streams.drop_output()
        return 141
    except OSError as error:
        return _refused(error)


def _refused(error: OSError) -> int:
    """The system refuses what nobody expected it to: no descriptors, no room, no such thing."""
    where = error.filename
    if where is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
        where = "standard output cannot be written"  # other files are written where their errors are known
        _streams.drop_output()
    hint = _REMEDIES.get(error.errno or 0, "")
    _streams.say(f"{where}: {error.strerror}" if where else str(error.strerror or error), hint)
    return 2


_REMEDIES = {
    errno.EMFILE: "Raise the limit of open files: ulimit -n 256",
    errno.ENOSPC: "Make room on the disk, or write elsewhere",
    errno.EAGAIN: "Raise the limit of processes: ulimit -u",
    errno.ENOMEM: "Free some memory",
}


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
        return _run_command(first, known[first], argv[1:])
    if first.startswith("-"):
        raise UsageError(f"unknown option {first}", "See stepscope --help")
    if first and not _exists(first):
        raise UsageError(f"neither a command nor a file: {first}", _advice(first, known))
    return _open_window(argv)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # a name that is too long, a folder that is closed to us
        return False


class _Parser(argparse.ArgumentParser):
    """Tells what cannot be used as every other error is told: in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"See {self.prog} --help")


def _advice(word: str, known: dict[str, Path]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean stepscope {close[0]}?" if close else "See stepscope --help"


def _run_command(name: str, path: Path, argv: list[str]) -> int:
    module = importlib.import_module(f"profiler.cli.{path.stem}")
    parser = _Parser(
        prog=f"stepscope {name}", description=module.__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    module.configure(parser)
    command: list[str] | None = None
    if getattr(module, "TAKES_COMMAND", False):
        end = argv.index("--") if "--" in argv else len(argv)
        argv, command = argv[:end], argv[end + 1:]
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed its line
        return stop.code if isinstance(stop.code, int) else 2
    if command is not None:
        args.command = command
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
        if not _exists(name):
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
