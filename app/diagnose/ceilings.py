"""The newest measurement of ceilings that the run holds, beside the run and its best test. Free of Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.diagnose.data import CeilingRow, CeilingsData
from profiler.report.ceilings import COLOURS, ceilings
from profiler.report.experiment import UNREADABLE
from profiler.rules.base import plural
from profiler.run.reader import Run
from profiler.units import format_ms, format_rate, ms_decimals


def query(run: Run, told: Mapping[str, Any], tests: Sequence[Mapping[str, Any]]) -> CeilingsData | None:
    """None where nothing was measured, or what was cannot be read."""
    for found in reversed(run.results("ceilings")):
        try:
            return _read(found, tests)
        except UNREADABLE:
            continue
    return None


def _read(found: Mapping[str, Any], tests: Sequence[Mapping[str, Any]]) -> CeilingsData | None:
    stages = found["stages"]
    if not stages:
        return None
    shown = ceilings(found)
    least = min(float(stage["step_ms"]["median"]) for stage in stages)
    decimals = ms_decimals(least * 1e6)
    rows, run_ms = [], None
    for stage in stages:
        level, rate = stage["step_ms"], stage["throughput"]
        ms = float(level["median"])
        run_ms = ms if stage["name"] == "real" else run_ms
        rows.append(CeilingRow(
            _title(stage), COLOURS.get(stage["name"], "other"), ms, float(level["low"]), float(level["high"]),
            format_ms(ms * 1e6, decimals, unit=False),
            format_rate(rate["median"], f"{found['unit']}/s") if rate else ""))
    verified = _best(tests)
    return CeilingsData(
        tuple(rows), f"each part alone, ms per step, {shown['note']}", shown["text"], run_ms,
        "" if run_ms is None else f"run {format_ms(run_ms * 1e6, decimals, unit=False)}", verified,
        "" if verified is None else f"verified {format_ms(verified * 1e6, decimals, unit=False)}",
        tuple(map(str, shown["more"])))


def _title(stage: Mapping[str, Any]) -> str:
    workers = stage["loader"].get("num_workers")
    title = str(stage["title"])
    loader = stage["name"].startswith("loader") and isinstance(workers, int)
    return f"loader, {plural(workers, 'worker')}" if loader else title


def _best(tests: Sequence[Mapping[str, Any]]) -> float | None:
    """The shortest step that a test with an improvement came to, in ms."""
    found = []
    for test in tests:
        try:
            if test["outcome"] == "improvement" and test["step_ms"]["b"]:
                found.append(float(test["step_ms"]["b"]))
        except UNREADABLE:
            continue
    return min(found, default=None)
