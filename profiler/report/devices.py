"""What a report says about the machine: its cores and memory, each GPU with its links, and who used it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from profiler.analysis.link import link_rate
from profiler.analysis.readings import User, users
from profiler.model import Device, mapping
from profiler.rules.words import listed
from profiler.units import format_clock, format_gib, format_number, format_share

if TYPE_CHECKING:
    from profiler.run.reader import Run

Rows = list[tuple[str, str]]
MOST_USERS = 20  # of one GPU


def machine(run: Run) -> Rows:
    """Host, system, CPU, cores and memory with what a container leaves of them, and a row for each GPU."""
    told = mapping(run.meta.get("machine"))
    rows = [("host", str(told.get("hostname") or "")),
            ("system", listed((str(told.get("system") or ""), str(told.get("platform") or "")))),
            ("container", str(told.get("container") or "")),
            ("CPU", str(told.get("cpu") or "")), ("cores", _cores(told)), ("memory", _memory(told))]
    rows += [(device.label, _device(run, device)) for device in run.devices]
    return [(name, value) for name, value in rows if value]


def processes(run: Run) -> Rows:
    """Who was on each GPU: those that computed most first, then by memory."""
    return [(f"{device.label}, pid {user.pid}", _user(user))
            for device in run.devices for user in users(run, device)[:MOST_USERS]]


def _user(user: User) -> str:
    whose = {"target": "of this run", "other": "another program"}.get(user.whose, user.whose)
    return listed((user.name, whose, f"{format_gib(user.bytes)} at most" if user.bytes is not None else "",
                   f"{format_share(user.busy)} of the time" if user.busy is not None else ""))


def _cores(told: Mapping[str, Any]) -> str:
    cores, usable, quota = (told.get(name) for name in ("cores", "cores_usable", "cores_quota"))
    text = f"{usable} usable of {cores}" if cores else ""
    limited = text and quota and usable and quota < usable
    return f"{text}, limited to the time of {format_number(quota, 1)}" if limited else text


def _memory(told: Mapping[str, Any]) -> str:
    total, limit = told.get("memory_bytes"), told.get("memory_limit")
    text = format_gib(total)
    return f"{text}, limited to {format_gib(limit)}" if limit and total and limit < total else text


def _device(run: Run, device: Device) -> str:
    of = device.properties
    power, link = of.get("power_limit_w"), link_rate(of)
    clock = of.get("max_clock_sm")
    shown, number = of.get("cuda_visible"), of.get("cuda_index")
    used = run.find("gpu.mem_used", device=device.id)
    older = any(track.properties.get("version") == "v1" for track in used)
    visible = "hidden from CUDA" if shown is False else f"cuda:{number}" if shown is True else ""
    return listed((
        device.name, "memory of the host" if of.get("unified_memory") else format_gib(device.memory_total),
        f"up to {format_number(power)} W" if isinstance(power, int | float) else "",
        f"SM clock up to {format_clock(clock)}" if isinstance(clock, int | float) else "",
        link[1] if link else "", _nvlinks(run, device),
        "used memory is with what the driver reserves (v1 query)" if older else "", visible, device.uuid))


def _nvlinks(run: Run, device: Device) -> str:
    """How many NVLinks lead to which GPU; what is no GPU of this machine is a switch or another bridge."""
    names = {str(d.properties["pci_bus_id"]).lower(): d.label for d in run.devices
             if d.properties.get("pci_bus_id")}
    ends: dict[str, int] = {}
    for bus, count in mapping(device.properties.get("nvlink_peers")).items():
        if isinstance(count, int):
            name = names.get(str(bus).lower(), "switches")
            ends[name] = ends.get(name, 0) + count
    return listed(f"{count} NVLinks to {name}" for name, count in ends.items())
