"""Where our own files lie, and how our own processes are started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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


def cache_dir() -> Path:
    """The user's cache directory for data that workloads make. STEPSCOPE_CACHE overrides it."""
    if path := os.environ.get("STEPSCOPE_CACHE"):
        return Path(path)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "stepscope"


def runs_dir() -> Path:
    """Where runs go that were given no file name. STEPSCOPE_RUNS overrides it."""
    if path := os.environ.get("STEPSCOPE_RUNS"):
        return Path(path)
    return Path.home() / "stepscope-runs"
