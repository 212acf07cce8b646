"""Recordings on a small file system of their own, in name spaces where mounting needs no privilege."""

from __future__ import annotations

import functools
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.record.running import environment


@functools.cache
def can_mount() -> bool:
    """Whether this machine lets us mount a file system in name spaces of our own."""
    try:
        return subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True,
                              timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


needs_mounts = pytest.mark.skipif(not can_mount(), reason="file systems cannot be mounted here")


def on_file_system(folder: Path, options: str, argv: list[str], *, read_only: bool = False,
                   env: dict[str, str] | None = None) -> subprocess.CompletedProcess[Any]:
    """Run `argv` while folder/small is a tmpfs with these options; what lies on it is left in folder/kept."""
    small, kept = folder / "small", folder / "kept"
    for made in (small, kept):
        made.mkdir(exist_ok=True)
    remount = f"mount -o remount,ro {small};" if read_only else ""
    text = (f"mount -t tmpfs -o {options} none {small} || exit 98; {remount} {shlex.join(argv)}; code=$?; "
            f"cp -a {small}/. {kept}; exit $code")
    return subprocess.run(["unshare", "-rm", "sh", "-c", text], cwd=folder, capture_output=True, text=True,
                          env={**environment(folder), **(env or {})}, timeout=120)
