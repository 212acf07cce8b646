"""What a report shows of a run's traces: the partition of step time, predictions, tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.metrics import stage_title
from profiler.report.step_chart import bar, stage_swatch
from profiler.report.table import Table
from profiler.report.trace_tables import tables
from profiler.rules.words import CLASS_STAGES, class_title, scenario_title, verdict_title
from profiler.units import (
    format_count,
    format_ms,
    format_prediction,
    format_ratio,
    format_share,
    ms_decimals,
)

RANK_CLASSES = 4  # that a table of ranks has columns for
_STAGES = {**CLASS_STAGES, "queued": "backward", "queued:peer": "communication", "allocator": "optimizer"}


def section(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Texts and pictures of the traces' part of a diagnosis; None without a trace."""
    if told.get("partition_ms") is None:
        return None
    return {"bar": _bar(told["partition_ms"]), "device": device_title(told),
            "partition": _partition(told), "unit": "step" if _steps(told)["count"] else "trace",
            "steps": _counted(told),
            "what_if": _what_if(told), "error": _error(told),
            "tables": [*filter(None, [ranks(told)]), *tables(told)]}


def device_title(told: Mapping[str, Any]) -> str:
    """The device whose partition is told; of several ranks with the rank."""
    rank = f", rank {told['rank']}" if told["ranks"] and told["rank"] is not None else ""
    return f"{told['device']['name']}{rank}"


def _steps(told: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = told.get("traced_steps") or told["steps"]
    return found


def _counted(told: Mapping[str, Any]) -> str:
    steps = _steps(told)
    if not steps["count"]:
        return "the whole trace, which has no steps"
    return (f"mean of {format_count(steps['count'])} of {format_count(steps['total'])} steps in the trace, "
            f"by {steps['rule']}")


def _ordered(part: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(((name, ms) for name, ms in part.items() if ms > 0), key=lambda item: -item[1])


def _bar(part: Mapping[str, float]) -> str:
    return bar([(_STAGES.get(name, "other"), class_title(name), ms) for name, ms in _ordered(part)],
               "Step time by what the device did")


def _partition(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    whole = sum(told["partition_ms"].values())
    decimals = ms_decimals(whole * 1e6)
    return [{"name": class_title(name), "swatch": stage_swatch(_STAGES.get(name, "other")),
             "ms": format_ms(ms * 1e6, decimals, unit=False), "share": format_share(ms / whole, 1)}
            for name, ms in _ordered(told["partition_ms"])]


def _what_if(told: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [(scenario_title(s["scenario"]), format_ms(s["step_ms"] * 1e6, unit=False),
             format_ratio(s["speedup"]), format_prediction(s["low"], s["high"]), s["note"])
            for s in sorted(told["what_if"] or (), key=lambda s: -s["speedup"])]


def _error(told: Mapping[str, Any]) -> str:
    replay = told.get("replay") or {}
    if replay.get("withheld"):
        return f"No predictions: {replay['withheld']}."
    if told["replay_error"] is None:
        return ""
    return f"Unchanged, the replay is {format_share(told['replay_error'], 1)} off the measured step."


def ranks(told: Mapping[str, Any]) -> Table | None:
    """One row for each of several ranks: its verdict and the main classes of its step; None for one rank."""
    found = told.get("ranks") or ()
    if not found:
        return None
    traced = any(rank.get("partition_ms") for rank in found)
    parts = [rank.get("partition_ms" if traced else "stages_ms") or {} for rank in found]
    spent = {name: sum(part.get(name, 0.0) for part in parts) for name in dict.fromkeys(
        name for part in parts for name in part)}
    most = [name for name in sorted(spent, key=lambda name: -spent[name]) if spent[name]][:RANK_CLASSES]
    rows = []
    for rank, part in zip(found, parts, strict=True):
        usual = rank["step_ms"]["usual"] if rank["step_ms"] else sum(part.values()) or None
        decimals = ms_decimals(usual * 1e6 if usual else None)
        rows.append((f"rank {rank['rank']}" if rank["rank"] is not None else f"process {rank['pid']}",
                     verdict_title(rank["verdict"]).lower(),
                     *(format_ms(ms * 1e6 if ms is not None else None, decimals, unit=False)
                       for ms in (usual, *(part.get(name) for name in most)))))
    return Table("Ranks", "ms per step, and where most of it goes",
                 ("Rank", "verdict", "step", *map(class_title if traced else stage_title, most)), rows, (1,))
