"""What works on this machine, what does not, and the fix. Nothing heavy is imported: it answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from profiler.doctor import gpu, machine, places, software
from profiler.doctor.base import STATES, Check

__all__ = ["STATES", "Check", "checks", "look"]


def checks() -> list[Check]:
    """Every row, the GPU first. A check that fails itself is a row that says so."""
    return look()[0]


def look() -> tuple[list[Check], list[dict[str, Any]] | None]:
    """The rows, and the GPUs that this interpreter's PyTorch can use: see software.usable_gpus."""
    found: list[Check] = []
    told = _guarded("NVML", gpu.ask, {"state": "absent", "reason": "the check failed", "devices": []}, found)
    has_gpu, has_amd = bool(told.get("devices")), bool((told.get("amd") or {}).get("devices"))
    groups: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("GPU", partial(gpu.rows, told)),
        ("Software", partial(software.rows, has_gpu, told.get("cuda_driver"), has_amd)),
        ("Machine", machine.rows),
        ("Places", places.rows),
    )
    for name, rows in groups:
        found += _guarded(name, partial(_all, rows), [], found)
    gpus = _guarded("PyTorch and GPUs", partial(software.usable_gpus, told.get("devices") or []), None, found)
    return found, gpus


def _all(rows: Callable[[], Iterator[Check]]) -> list[Check]:
    return list(rows())


def _guarded(name: str, call: Callable[[], Any], otherwise: Any, found: list[Check]) -> Any:
    try:
        return call()
    except Exception as error:  # the doctor must not be the patient
        found.append(Check(name, "error", f"the check itself failed: {type(error).__name__}: {error}"))
        return otherwise
