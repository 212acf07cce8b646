"""Whether a window can be shown here. Qt itself would abort the process instead of saying so."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from profiler.errors import UsageError

_HEADLESS = "Try stepscope demo --headless"
_CURSOR = "libxcb-cursor.so.0"  # the one library of Qt's X11 plugin that desktops often lack
_USUAL = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def check_display() -> None:
    """UsageError when Qt would find no display, or lacks a library to use it."""
    if not sys.platform.startswith("linux"):
        return
    platform = os.environ.get("QT_QPA_PLATFORM", "")
    if os.environ.get("WAYLAND_DISPLAY") and not platform.startswith("xcb"):
        return
    if platform and not platform.startswith("xcb"):
        return  # offscreen and kin
    display = os.environ.get("DISPLAY", "")
    if not _answers(display):
        raise UsageError(f"the display {display} does not answer", _HEADLESS)
    if not _has_library():
        raise UsageError(
            f"the window needs {_CURSOR}, which is not installed",
            f"Install libxcb-cursor0 (Debian, Ubuntu) or xcb-util-cursor (Fedora). {_HEADLESS}",
        )


def _has_library() -> bool:
    if any(Path(folder, _CURSOR).exists() for folder in _USUAL):
        return True
    import ctypes

    try:
        ctypes.CDLL(_CURSOR)
    except OSError:
        return False
    return True


def _answers(display: str) -> bool:
    """Whether an X server listens there; true where the name is of a form unknown to us."""
    match = re.fullmatch(r"(?:unix)?([^:/]*):(\d+)(?:\.\d+)?", display)
    if match is None:
        return bool(display)
    host, number = match[1], int(match[2])
    if host:
        return _connects((host, 6000 + number))
    path = f"/tmp/.X11-unix/X{number}"
    return _connects(path) or _connects("\0" + path)


def _connects(address: tuple[str, int] | str) -> bool:
    import socket

    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(3)
        try:
            connection.connect(address)
        except OSError:
            return False
    return True
