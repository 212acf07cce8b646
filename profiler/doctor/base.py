"""A row of the doctor."""

from __future__ import annotations

from dataclasses import dataclass

STATES = ("ok", "warning", "error", "absent")


@dataclass(frozen=True, slots=True)
class Check:
    """`text` says what is, `hint` what to do about it. `state`: one of STATES."""

    name: str
    state: str
    text: str
    hint: str = ""
