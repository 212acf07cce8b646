"""Tables of kernels, operators, modules and the user's code: what takes time, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from profiler.report.table import COUNTED, Table, longest, ms, on_device, per_step, unit, value
from profiler.rules.trace.evidence import own_line
from profiler.rules.words import frame_title, kernel_title
from profiler.units import format_count, format_number, format_share


def kernels(told: Mapping[str, Any]) -> Table | None:
    found = told.get("kernels")
    if not found:
        return None
    rows = [(kernel_title(r["key"][0]), format_count(r["count"]), ms(r["total_ms"]),
             ms(r["ms_per_step"]), format_share(r["share"], 1), format_share(r["occupancy"]),
             format_share(r["tensor_cores"])) for r in found["by_name"]["rows"]]
    head = ("Kernel", "count", "total ms", "ms/step", "share", "occupancy", "tensor cores")
    return Table("Kernels", f"{format_count(found['count'])} {COUNTED}; occupancy is estimated, tensor cores "
                 "are told by names", head, rows)


def operators(told: Mapping[str, Any]) -> Table | None:
    found = value(told, "operators", "by_name", "rows")
    if not found:
        return None
    head, times = _columns(told, ("host self", "host_self_ms"), ("device self", "device_self_ms"),
                           ("device total", "device_total_ms"))
    if not on_device(told):
        head, times = [*head, "host total"], [*times, "host_total_ms"]
    rows = [(r["key"][0], format_count(r["calls"]), *(per_step(told, r[name]) for name in times))
            for r in longest(found, _key(told))]
    return Table("Operators", f"{COUNTED}, {unit(told)}", ("Operator", "calls", *head), rows)


def own_code(told: Mapping[str, Any]) -> Table | None:
    """Time of operators by the innermost frame of the user's own code in their call stacks."""
    found, key = value(told, "operators", "by_stack"), _key(told)
    spent: dict[str, dict[str, float]] = {}
    for row in (found or {}).get("rows") or ():
        if row[key]:
            sums = spent.setdefault(_own(row["key"][1].split(";")), {})
            sums[row["key"][0]] = sums.get(row["key"][0], 0.0) + row[key]
    if not any(spent):
        return None
    rows = [(where or "elsewhere (backward, libraries)", max(sums, key=lambda name: sums[name]),
             per_step(told, sum(sums.values())))
            for where, sums in sorted(spent.items(), key=lambda item: -sum(item[1].values()))]
    rest = found[f"left_out_{key}"]
    small = f"; {per_step(told, rest)} {unit(told)} of smaller operators are not in it" if rest else ""
    where = "device" if on_device(told) else "host"
    head = ("Called from", "most by", f"{where} {unit(told)}")
    return Table("Your code", COUNTED + small, head, rows, (1,))


def stacks(told: Mapping[str, Any]) -> Table | None:
    """Who called which operator: the innermost frame, and the innermost one of the user's code."""
    spent: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in value(told, "operators", "by_stack", "rows") or ():
        frames = row["key"][1].split(";")
        if row["key"][1]:
            sums = spent.setdefault((row["key"][0], frame_title(frames[0]), _own(frames)), {})
            for name in ("calls", "host_self_ms", "device_self_ms"):
                sums[name] = sums.get(name, 0) + row[name]
    head, times = _columns(told, ("host self", "host_self_ms"), ("device self", "device_self_ms"))
    rows = [(*who, format_count(sums["calls"]), *(per_step(told, sums[name]) for name in times))
            for who, sums in sorted(spent.items(), key=lambda item: -item[1][_key(told)]) if sums[_key(told)]]
    return Table("Operators by call stack", f"{COUNTED}, {unit(told)}",
                 ("Operator", "called from", "in your code", "calls", *head), rows, (1, 2))


def modules(told: Mapping[str, Any]) -> Table | None:
    head, times = _columns(told, ("host", "host_total_ms"), ("device", "device_total_ms"),
                           ("of it backward", "backward_ms"))
    key = "device_total_ms" if on_device(told) else "host_total_ms"
    rows = [(r["path"], format_count(r["calls"]), *(per_step(told, r[name]) for name in times))
            for r in longest(value(told, "modules", "rows") or (), key)]
    return Table("Modules", f"{COUNTED}, {unit(told)}", ("Module", "calls", *head), rows)


def _key(told: Mapping[str, Any]) -> str:
    """By what operators are ordered."""
    return "device_self_ms" if on_device(told) else "host_self_ms"


def _columns(told: Mapping[str, Any], host: tuple[str, str], *device: tuple[str, str],
             ) -> tuple[list[str], list[str]]:
    """Heads and keys; without an accelerator those of the host alone."""
    kept = [host, *device] if on_device(told) else [host]
    return [head for head, _ in kept], [key for _, key in kept]


def _own(frames: Sequence[str]) -> str:
    return next((frame_title(frame) for frame in frames if own_line(frame)), "")


def roofline(told: Mapping[str, Any]) -> Table | None:
    """Operators whose work their shapes tell, beside the limit of the device."""
    found = told.get("roofline")
    if not found:
        return None

    def shapes(text: str) -> str:
        return text.replace(",[]", "").replace("[],", "")

    rows = [(p["operator"], shapes(p["shapes"]), p["dtype"], format_count(p["count"]), ms(p["time_ms"]),
             format_number(p["tflops"], 2), format_number(p["attainable"], 1), p["bound"] or "")
            for p in longest(found["points"]["rows"], "time_ms")]
    said = [f"{r['name']} {r['dtype']}: {format_number(r['tflops'], 1)} TFLOP/s, "
            f"{format_number(r['gbs'])} GB/s" for r in found["roofs"]]
    if any((p["tflops"] or 0) > (p["attainable"] or math.inf) for p in found["points"]["rows"]):
        said.append("above the limit: fewer operations than counted, as Winograd convolutions do")
    return Table("Roofline", "; ".join(said), ("Operator", "shapes", "type", "count", "total ms", "TFLOP/s",
                                                "at most", "bound by"), rows, (1, 2, 7))
