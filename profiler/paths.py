"""Where our own files lie, and how our own processes are started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from profiler.errors import UsageError

HOME = Path(__file__).resolve().parent.parent  # holds app, profiler, workloads, assets
PROBE = HOME / "profiler" / "probe"
ASSETS = HOME / "assets"


def entry_point() -> Path:
    """stepscope.py: beside the folders in a checkout, one level up in an installed wheel."""
    here = HOME / "stepscope.py"
    return here if here.exists() else HOME.parent / "stepscope.py"


def own_command(*args: str) -> list[str]:
    """The command line of a process of ours.

    By path, with -P and -E, so that neither the working directory nor PYTHONPATH
    puts another `profiler` in the place of ours.
    """
    return [sys.executable, "-P", "-E", str(entry_point()), *args]


def working_dir() -> Path | None:
    """The working directory; None when it has been removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _home(variable: str) -> Path:
    try:
        return Path.home()
    except RuntimeError:  # neither HOME nor an entry of ours among the users
        raise UsageError("there is no home directory", f"Set HOME, or {variable}") from None


def cache_dir() -> Path:
    """The user's cache directory for data that workloads make. STEPSCOPE_CACHE overrides it."""
    if path := os.environ.get("STEPSCOPE_CACHE"):
        return Path(path)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(_home("STEPSCOPE_CACHE") / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(_home("STEPSCOPE_CACHE") / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(_home("STEPSCOPE_CACHE") / ".cache")
    return Path(base) / "stepscope"


def runs_dir() -> Path:
    """Where runs go that were given no file name. STEPSCOPE_RUNS overrides it."""
    if path := os.environ.get("STEPSCOPE_RUNS"):
        return Path(path)
    return _home("STEPSCOPE_RUNS") / "stepscope-runs"
