"""GPUs: the driver, each device, who else uses it, and what profiling may read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.doctor.base import Check
from profiler.machine import read
from profiler.sources._apart import describe_apart
from profiler.units import format_gib

PARAMS = Path("/proc/driver/nvidia/params")


def ask() -> dict[str, Any]:
    """What NVML tells, asked in a process of its own: see profiler.sources.nvml.describe.

    With `amd`, where that is worth asking: see profiler.sources.amd.describe.
    """
    told = describe_apart()
    return {**told["nvml"], "amd": told.get("amd") or {}}


def rows(told: Mapping[str, Any]) -> Iterator[Check]:
    devices, amd = told.get("devices") or [], told.get("amd") or {}
    yield from amd_rows(amd)
    if not devices and not amd.get("devices"):
        why = amd if amd.get("hardware") else told
        yield Check("GPU", "absent", str(why.get("reason") or "none found"), str(why.get("hint") or ""))
    for device in devices:
        name = "GPU" if len(devices) == 1 else f"GPU {device['index']}"
        yield device_check(name, device, told.get("driver"))
    for text in told.get("failures") or ():
        yield Check("GPU", "error", str(text), "nvidia-smi and the kernel log (dmesg) may tell why")
    if told.get("state") == "ok":
        parts = [f"driver {told['driver']}" if told.get("driver") else "",
                 f"CUDA up to {told['cuda_driver']}" if told.get("cuda_driver") else "",
                 f"NVML {told['nvml']}" if told.get("nvml") else ""]
        yield Check("NVML", "ok", ", ".join(filter(None, parts)) or "answers")
    if (params := read(PARAMS)) is not None:
        yield permission_check(params, root=os.geteuid() == 0)


def amd_rows(told: Mapping[str, Any]) -> Iterator[Check]:
    """The AMD GPUs, and by what they are read."""
    devices = told.get("devices") or []
    for device in devices:
        yield device_check("AMD GPU" if len(devices) == 1 else f"AMD GPU {device['index']}", device,
                           told.get("driver"))
    for text in told.get("failures") or ():
        yield Check("AMD GPU", "error", str(text), "amd-smi and the kernel log (dmesg) may tell why")
    if told.get("state") == "ok":
        version = f"amdsmi {told['amdsmi']}" if told.get("amdsmi") else ""
        yield Check("AMD SMI", "ok", version or "answers")


def device_check(name: str, device: Mapping[str, Any], driver: str | None) -> Check:
    """Name, memory, driver; a warning when somebody else computes on it."""
    total = device.get("memory_total")
    parts = [str(device["name"]), format_gib(total) if total else "", f"driver {driver}" if driver else "",
             "MIG on: power and clocks are of the whole card" if device.get("mig") else "",
             f"part {device['part']} of a split card" if device.get("part") else ""]
    text = ", ".join(filter(None, parts))
    users: Sequence[tuple[int, str, int | None]] = device.get("users") or ()
    if not users:
        return Check(name, "warning" if device.get("mig") else "ok", text)
    shown = [f"{who or 'a process'} (pid {pid}{', ' + format_gib(used) if used else ''})"
             for pid, who, used in users[:3]]
    more = f" and {len(users) - 3} more" if len(users) > 3 else ""
    return Check(name, "warning", f"{text}, in use by {', '.join(shown)}{more}",
                 "Step times are only comparable on a GPU that nobody else uses")


def permission_check(params: str, root: bool) -> Check:
    """From /proc/driver/nvidia/params: who may read performance counters."""
    fields = dict(line.partition(":")[::2] for line in params.splitlines())
    value = fields.get("RmProfilingAdminOnly", "").strip()
    if value not in ("0", "1"):
        return Check("GPU counters", "absent", "the driver does not say who may read performance counters")
    if value == "0" or root:
        return Check("GPU counters", "ok", "performance counters may be read")
    return Check("GPU counters", "warning", "only root may read performance counters; kernel traces may work",
                 "Set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module and reboot")
