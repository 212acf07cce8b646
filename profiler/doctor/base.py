"""A row of the doctor, and how its files are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STATES = ("ok", "warning", "error", "absent")


@dataclass(frozen=True, slots=True)
class Check:
    """`text` says what is, `hint` what to do about it. `state`: one of STATES."""

    name: str
    state: str
    text: str
    hint: str = ""


def read(path: Path) -> str | None:
    """The text of a small file of the kernel's; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
