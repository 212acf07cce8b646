"""The largest rows of a trace's tables, as texts: for the report and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiler.report.operator_tables import kernels, modules, operators, own_code, roofline, stacks
from profiler.report.table import COUNTED, Table, longest, ms, on_device, per_step, steps, unit, value
from profiler.rules.words import class_title, kernel_title
from profiler.units import format_bytes, format_count, format_number, format_share


def tables(told: Mapping[str, Any], most: int = 15) -> list[Table]:
    """Of a diagnosis in its JSON form, those that it has; the first `most` rows of each."""
    made = (_device, kernels, operators, own_code, stacks, modules, _launches, _gaps, _copies,
            _communication, _waiting, _memory, roofline, _critical)
    found = [table for make in made if (table := make(told))]
    return [Table(t.title, _said(t, most), t.head, t.rows[:most], t.words) if t.head else t
            for t in found if t.rows]


def summary(told: Mapping[str, Any]) -> list[str]:
    """The figures that are looked for first, in a line or two."""
    return [", ".join(f"{name} {said}" for name, said in _facts(told) if said), _top(told)]


def _said(table: Table, most: int) -> str:
    """The note, with how many rows are left out."""
    more = len(table.rows) - most
    left_out = f"{format_count(more)} more in --json" if more > 0 else ""
    return "; ".join(text for text in (table.note, left_out) if text)


def _shown(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the device did whose partition is shown."""
    devices = told.get("devices") or []
    found = [d for d in devices if d["device"] == told["device"].get("id")]
    return (found or devices or [None])[0]


def _facts(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value); the value is empty where it is not known."""
    device, per = _shown(told), "per step" if steps(told) else "in the trace"
    busy = None
    if device and device["window_ms"]:
        busy = device["busy_ms"] / (device["window_ms"] * (steps(told) or 1))
    mfu, peak = value(told, "efficiency", "value"), value(told, "efficiency", "peak_tflops")
    launches = value(told, "launches", "calls_per_step") or value(told, "launches", "calls")
    return [("device busy", format_share(busy)),
            ("MFU", "" if mfu is None or not peak else f"{format_share(mfu, 1 if mfu >= 0.01 else 3)} of "
             f"{format_number(peak, 1)}\u00a0TFLOP/s {told['efficiency']['dtype']}"),
            ("memory peak", ", ".join(_peaks(told, among=on_device(told)))),
            (f"launches {per}", format_count(launches))]


def _peaks(told: Mapping[str, Any], among: bool = False) -> list[str]:
    """What each device had allocated at most. `among`: not the CPU."""
    found = []
    for device in value(told, "memory", "devices") or ():
        if not (among and device["device"] == "CPU"):
            least = "" if device["known"] or device["peak"]["allocated"] is None else "at least "
            held = device["peak"]["reserved"]
            found.append(f"{device['device']} {least}{format_bytes(device['peak']['allocated'])}"
                         + (f" (reserved {format_bytes(held)})" if held else ""))
    return found


def _top(told: Mapping[str, Any]) -> str:
    """The operators that take most time."""
    key = "device_self_ms" if on_device(told) else "host_self_ms"
    rows = longest(value(told, "operators", "by_name", "rows") or (), key)[:3]
    named = [f"{row['key'][0].removeprefix('aten::')} {per_step(told, row[key])}" for row in rows]
    where = "device" if on_device(told) else "host"
    return f"most {where} time, {unit(told)}: {', '.join(named)}" if named else ""


def _device(told: Mapping[str, Any]) -> Table | None:
    device, kernels = _shown(told), told.get("kernels") or {}
    if device is None:
        return None

    def mean(name: str) -> str:
        return f"{per_step(told, device[name])}\u00a0{unit(told)}"

    rows = [*((name[0].upper() + name[1:], said) for name, said in _facts(told)),
            ("Kernels, sum", mean("kernel_sum_ms")),
            ("Kernels, time with at least one", mean("kernel_union_ms")),
            ("Copies beside compute", mean("copy_under_compute_ms")),
            ("SM efficiency, estimated", format_share(kernels.get("sm_efficiency"))),
            ("Occupancy, estimated", format_share(kernels.get("occupancy"))),
            ("Tensor cores, share of kernel time, at least", format_share(kernels.get("tensor_cores"))),
            ("Tensor cores, share that could", format_share(kernels.get("tensor_cores_possible")))]
    return Table("Device", told["device"]["name"] or "", (), [row for row in rows if row[1]])


def _launches(told: Mapping[str, Any]) -> Table | None:
    found = told.get("launches")
    if not found:
        return None

    def us(times: Mapping[str, float | None] | None) -> tuple[str, ...]:
        return tuple(format_number((times or {}).get(name), 1) for name in ("median", "p5", "p95", "max"))

    rows = [("launch call", *us(found["cost_us"])), ("launch to begin", *us(found["delay_us"])),
            ("launch to begin, device idle", *us(found["latency_us"]))]
    said = [f"{format_count(found['calls'])} {COUNTED}"]
    if found["short_kernels"] is not None:
        said.append(f"{format_count(found['short_kernels'])} kernels shorter than their launch call")
    said += [f"queue {format_number(q['mean'], 1)} deep on average, {format_count(q['max'])} at most"
             for q in (told.get("queue") or ())[:1]]
    return Table("Launches", "; ".join(said), ("us", "median", "5 %", "95 %", "longest"),
                 [row for row in rows if row[1]])


def _gaps(told: Mapping[str, Any]) -> Table | None:
    found = told.get("gaps")
    if not found:
        return None
    rows = [(class_title(r["cause"]), ms(r["ms"]), ms(r["start_ms"], 1), kernel_title(r["next"] or ""),
             r["launch"] or "") for r in found["longest"]]
    said = f"of {format_count(found['count'])}, {ms(found['total_ms'], 1)} ms in all"
    return Table("Longest idle gaps", said,
                 ("Cause", "ms", "at ms", "next on the device", "launched by"), rows, (3, 4))


def _copies(told: Mapping[str, Any]) -> Table | None:
    rows = [(r["kind"].replace("_", " "), format_count(r["count"]), format_bytes(r["bytes"]),
             ms(r["total_ms"]), ms(r["overlapped_ms"]), format_number(r["rate"], 2))
            for r in told.get("copies") or ()]
    return Table("Copies", COUNTED, ("Copy", "count", "bytes", "total ms", "beside compute ms", "GB/s"), rows)


def _communication(told: Mapping[str, Any]) -> Table | None:
    rows = [(r["collective"].replace("_", " "), r["group"] or "", format_count(r["ranks"]),
             format_count(r["count"]), format_bytes(r["total_bytes"]), ms(r["time_ms"]),
             ms(r["exposed_ms"]), format_number(r["algorithm_gbs"], 2), format_number(r["bus_gbs"], 2))
            for r in value(told, "communication", "kinds") or ()]
    return Table("Communication", f"{COUNTED}; waiting for other ranks is in the times",
                 ("Collective", "group", "ranks", "count", "bytes", "total ms", "exposed ms", "alg. GB/s",
                  "bus GB/s"), rows, (1,))


def _waiting(told: Mapping[str, Any]) -> Table | None:
    rows = [(r["name"], ms(r["wait_ms"]), ms(r["held_up_ms"]),
             f"{format_count(r['last'])} of {format_count(r['collectives'])}")
            for r in value(told, "waiting", "ranks") or ()]
    return Table("Waiting between ranks", COUNTED, ("Rank", "waits ms", "holds others up ms", "arrives last"),
                 rows)


def _memory(told: Mapping[str, Any]) -> Table | None:
    """What was live at each device's peak."""
    rows = [(device["device"], live["operator"] or "no operator", live["module"], live["category"],
             format_bytes(live["bytes"]), format_count(live["count"]))
            for device in value(told, "memory", "devices") or () for live in device["peak"]["live"]["rows"]]
    return Table("Memory at its peak", ", ".join(_peaks(told)),
                 ("Device", "allocated by", "module", "category", "bytes", "count"), rows, (1, 2, 3))


def _critical(told: Mapping[str, Any]) -> Table | None:
    found = value(told, "critical_path", "by_class_ms") or {}
    whole = sum(found.values())
    rows = [(class_title(name), ms(spent), format_share(spent / whole, 1))
            for name, spent in sorted(found.items(), key=lambda item: -item[1]) if spent]
    return Table("Critical path", "what a step's length hangs on", ("On it", unit(told), "share"), rows)
