"""What a report shows of a run's traces: the partition of step time, predictions, largest rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.report.step_chart import bar, stage_swatch
from profiler.rules.words import class_title, scenario_title
from profiler.units import (
    format_bytes,
    format_count,
    format_ms,
    format_number,
    format_prediction,
    format_ratio,
    format_share,
    ms_decimals,
)

ROWS = 15
FRAMES = 3  # of a call stack, from the innermost
_STAGES = {"compute": "forward", "communication_exposed": "communication", "transfer_exposed": "h2d",
           "transfer_host": "h2d", "input_wait": "data", "sync": "sync", "queued": "backward",
           "queued:peer": "communication", "allocator": "optimizer"}  # whose colour a class wears

Table = dict[str, Any]


def section(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Texts and pictures of the traces' part of a diagnosis; None without a trace."""
    if told.get("partition_ms") is None:
        return None
    return {"bar": _bar(told["partition_ms"]), "device": told["device"]["name"],
            "partition": _partition(told), "unit": "step" if _steps(told)["count"] else "trace",
            "steps": _counted(told),
            "what_if": _what_if(told), "error": _error(told),
            "tables": [table for table in (_kernels(told), _operators(told), _stacks(told), _copies(told),
                                           _communication(told), _memory(told)) if table]}


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


def _ms(value: float | None, decimals: int = 2) -> str:
    return format_ms(None if value is None else value * 1e6, decimals, unit=False)


def _kernels(told: Mapping[str, Any]) -> Table | None:
    found = told.get("kernels")
    if not found:
        return None
    rows = [(r["key"][0], format_count(r["count"]), _ms(r["total_ms"]), _ms(r["ms_per_step"]),
             format_share(r["share"], 1), format_share(r["occupancy"]), format_share(r["tensor_cores"]))
            for r in found["by_name"]["rows"][:ROWS]]
    known = format_share(found["tensor_cores"])
    note = f"{format_count(found['count'])} in the counted steps, tensor cores at least {known} of it"
    head = ("Kernel", "count", "total ms", "ms/step", "share", "occupancy, estimated", "tensor cores")
    return {"title": "Kernels", "note": note, "rows": rows, "head": head}


def _operators(told: Mapping[str, Any]) -> Table | None:
    found = told.get("operators")
    if not found:
        return None
    rows = [(r["key"][0], format_count(r["calls"]), _ms(r["host_self_ms"]), _ms(r["device_self_ms"]),
             _ms(r["device_total_ms"])) for r in found["by_name"]["rows"][:ROWS]]
    return {"title": "Operators", "note": "in the counted steps", "rows": rows,
            "head": ("Operator", "calls", "host self ms", "device self ms", "device total ms")}


def _stacks(told: Mapping[str, Any]) -> Table | None:
    """Who called which operator; a stack's innermost frames."""
    found = (told.get("operators") or {}).get("by_stack")
    if not found:
        return None
    rows = [(r["key"][0], "; ".join(r["key"][1].split(";")[:FRAMES]), format_count(r["calls"]),
             _ms(r["host_self_ms"]), _ms(r["device_self_ms"])) for r in found["rows"][:ROWS] if r["key"][1]]
    return {"title": "Operators by call stack", "note": "in the counted steps", "rows": rows,
            "head": ("Operator", "called from", "calls", "host self ms", "device self ms")} if rows else None


def _copies(told: Mapping[str, Any]) -> Table | None:
    found = told.get("copies")
    if not found:
        return None
    rows = [(r["kind"].replace("_", " "), format_count(r["count"]), format_bytes(r["bytes"]),
             _ms(r["total_ms"]), format_number(r["rate"], 2)) for r in found]
    return {"title": "Copies", "note": "in the counted steps", "rows": rows,
            "head": ("Kind", "count", "bytes", "total ms", "GB/s")}


def _communication(told: Mapping[str, Any]) -> Table | None:
    found = told.get("communication")
    if not found:
        return None
    rows = [(r["collective"].replace("_", " "), format_count(r["count"]), format_bytes(r["total_bytes"]),
             _ms(r["time_ms"]), _ms(r["exposed_ms"]), format_number(r["bus_gbs"], 2)) for r in found["kinds"]]
    return {"title": "Communication", "note": "in the counted steps; waiting for other ranks is in it",
            "rows": rows, "head": ("Collective", "count", "bytes", "total ms", "exposed ms", "bus GB/s")}


def _memory(told: Mapping[str, Any]) -> Table | None:
    """What was live at each device's peak."""
    devices = (told.get("memory") or {}).get("devices") or []
    rows = [(d["device"], live["operator"] or "no operator", live["module"], live["category"],
             format_bytes(live["bytes"]), format_count(live["count"]))
            for d in devices for live in d["peak"]["live"]["rows"][:ROWS]]
    if not rows:
        return None
    peaks = ", ".join(f"{d['device']} {format_bytes(d['peak']['allocated'])}" for d in devices)
    return {"title": "Memory at its peak", "note": peaks, "rows": rows,
            "head": ("Device", "Operator", "module", "category", "bytes", "count")}
