"""Tables of texts, and the ways into a diagnosis in its JSON form that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from profiler.units import format_ms

Rows = Sequence[Mapping[str, Any]]
COUNTED = "in the counted steps"


@dataclass(frozen=True)
class Table:
    """Texts in rows. Columns are figures, except the first and those in `words`."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: tuple[int, ...] = ()


def ms(value: float | None, decimals: int = 2) -> str:
    """A time in ms, without its unit."""
    return format_ms(None if value is None else value * 1e6, decimals, unit=False)


def value(told: Mapping[str, Any], *names: str) -> Any:
    """A value inside; None where the way to it ends."""
    found: Any = told
    for name in names:
        found = (found or {}).get(name)
    return found


def steps(told: Mapping[str, Any]) -> int | None:
    """How many steps are counted; None where figures are of the whole trace."""
    found: int = (told.get("traced_steps") or told["steps"])["count"]
    return found or None


def per_step(told: Mapping[str, Any], total_ms: float | None) -> str:
    """A sum over the counted steps as a mean, in ms; of the whole trace where it has no steps."""
    return ms(total_ms / (steps(told) or 1)) if total_ms is not None else ""


def unit(told: Mapping[str, Any]) -> str:
    """Of what `per_step` gives."""
    return "ms/step" if steps(told) else "ms"


def on_device(told: Mapping[str, Any]) -> bool:
    """Whether kernels of an accelerator are there."""
    return bool(told.get("kernels"))


def longest(rows: Rows, key: str) -> list[Mapping[str, Any]]:
    """Those that took any time, the longest first."""
    return sorted((row for row in rows if row[key]), key=lambda row: -row[key])
