"""Cores and memory as this process may use them, the CPU's governor, containers, the display."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from profiler.doctor.base import Check
from profiler.machine import container, cpu_quota, memory_limit, read
from profiler.machine import platform as odd_platform
from profiler.units import format_count, format_gib, format_number

NVIDIA = Path("/dev/nvidiactl")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
LITTLE_MEMORY = 2 << 30  # B
LESS = {"wsl": "the driver tells neither what each process uses, nor power or clocks of some GPUs",
        "jetson": "the GPU's memory is the host's, and NVML tells little of it"}
ADVICE = {"wsl": "The driver is that of Windows: install none in WSL. Counters for kernel traces are "
                 "permitted in the NVIDIA Control Panel of Windows",
          "jetson": "tegrastats tells power, clocks and utilization"}


def rows() -> Iterator[Check]:
    total, quota, limit = os.cpu_count() or 1, cpu_quota(), memory_limit()
    yield cores_check(total, affinity() or total, quota)
    memory = psutil.virtual_memory()
    yield memory_check(memory.total, memory.available, limit)
    yield governor_check(read(GOVERNOR))
    yield platform_check(odd_platform())
    yield container_check(container(), quota is not None or limit is not None, NVIDIA.exists())
    yield display_check(os.environ, sys.platform)


def affinity() -> int | None:
    """Cores that this process may run on; None where the system does not tell."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return None


def cores_check(total: int, usable: int, quota: float | None) -> Check:
    text = f"{format_count(usable)} usable of {format_count(total)}"
    if quota is not None and quota < usable:
        return Check("Cores", "warning", f"{text}, limited to the time of {format_number(quota, 1)}",
                     "Loader workers beyond that are held up; the limit is the container's or the job's")
    if usable < 2:
        return Check("Cores", "warning", text, "Loader workers share the one core with the loop")
    return Check("Cores", "ok", text)


def memory_check(total: int, available: int, limit: tuple[int, int | None] | None) -> Check:
    """`limit`: bytes that are granted, and those used of them where that is told."""
    text = f"{format_gib(available)} free of {format_gib(total)}"
    if limit is not None and limit[0] < total:
        granted, used = limit
        text += f", limited to {format_gib(granted)}"
        text += f" with {format_gib(used)} in use" if used is not None else ""
        available = min(available, max(0, granted - (used or 0)))
    low = available < LITTLE_MEMORY
    return Check("Memory", "warning" if low else "ok", text,
                 "Each loader worker needs some hundred MB" if low else "")


def governor_check(governor: str | None) -> Check:
    if not governor:
        return Check("CPU governor", "absent", "not told by this system (usual in a virtual machine)")
    if governor == "powersave":
        return Check("CPU governor", "warning", "powersave: step times may vary",
                     "For measurements: sudo cpupower frequency-set -g performance")
    return Check("CPU governor", "ok", governor)


def platform_check(found: tuple[str, str] | None) -> Check:
    """WSL and Jetson, where the driver tells less of the GPU than elsewhere."""
    if found is None:
        return Check("Platform", "ok", f"{platform.system()} {platform.machine()}")
    kind, name = found
    return Check("Platform", "ok", f"{name}: {LESS[kind]}", ADVICE[kind])


def container_check(kind: str | None, limited: bool, has_gpu: bool) -> Check:
    if kind is None:
        return Check("Container", "ok", "none recognised")
    text = f"{kind}: {'cores or memory are limited' if limited else 'neither cores nor memory are limited'}"
    if not has_gpu:
        return Check("Container", "ok", text)
    return Check("Container", "ok", f"{text}; the GPU's processes are listed by the host's pids",
                 "Start it with --pid=host to tell whose processes use the GPU")


def display_check(env: Mapping[str, str], platform: str) -> Check:
    if not platform.startswith("linux"):
        return Check("Display", "ok", "the system's")
    for name in ("WAYLAND_DISPLAY", "DISPLAY"):
        if env.get(name):
            return Check("Display", "ok", f"{name}={env[name]}")
    return Check("Display", "absent", "none: the window cannot be shown here",
                 "stepscope demo --headless works without one")
