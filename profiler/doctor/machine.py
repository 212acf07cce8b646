"""Cores and memory as this process may use them, the CPU's governor, containers, the display."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from profiler.doctor.base import Check, read
from profiler.units import format_count, format_gib, format_number

CGROUPS = Path("/sys/fs/cgroup")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
LITTLE_MEMORY = 2 << 30  # B


def rows() -> Iterator[Check]:
    own = read(Path("/proc/self/cgroup")) or ""
    total = os.cpu_count() or 1
    yield cores_check(total, affinity() or total, cpu_quota(CGROUPS, own))
    memory = psutil.virtual_memory()
    yield memory_check(memory.total, memory.available, memory_limit(CGROUPS, own))
    yield governor_check(read(GOVERNOR))
    yield container_check(Path("/"), os.environ)
    yield display_check(os.environ, sys.platform)


def affinity() -> int | None:
    """Cores that this process may run on; None where the system does not tell."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return None


def _levels(root: Path, own: str, name: str, controller: str) -> Iterator[str]:
    """The texts of a control file in our group and all groups above it, in version 2 and version 1."""
    for line in own.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            base = root
        elif controller in controllers.split(","):
            base = root / controllers
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            if (text := read(folder / name)) is not None:
                yield text
            if folder == base:
                break


def cpu_quota(root: Path, own: str) -> float | None:
    """Cores' worth of time that control groups grant; None without a limit. `own`: /proc/self/cgroup."""
    limits = []
    for text in _levels(root, own, "cpu.max", "cpu"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.isdigit():
            limits.append(int(quota) / int(period))
    periods = list(_levels(root, own, "cpu.cfs_period_us", "cpu"))
    for quota, period in zip(_levels(root, own, "cpu.cfs_quota_us", "cpu"), periods, strict=False):
        if quota.isdigit() and period.isdigit() and int(period):
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory_limit(root: Path, own: str) -> int | None:
    """Bytes that control groups grant; None without a limit."""
    texts = [*_levels(root, own, "memory.max", "memory"),
             *_levels(root, own, "memory.limit_in_bytes", "memory")]
    limits = [int(text) for text in texts if text.isdigit() and int(text) < 1 << 60]
    return min(limits, default=None)


def cores_check(total: int, usable: int, quota: float | None) -> Check:
    text = f"{format_count(usable)} usable of {format_count(total)}"
    if quota is not None and quota < usable:
        return Check("Cores", "warning", f"{text}, limited to the time of {format_number(quota, 1)}",
                     "Loader workers beyond that are held up; the limit is the container's or the job's")
    if usable < 2:
        return Check("Cores", "warning", text, "Loader workers share the one core with the loop")
    return Check("Cores", "ok", text)


def memory_check(total: int, available: int, limit: int | None) -> Check:
    text = f"{format_gib(available)} free of {format_gib(total)}"
    if limit is not None and limit < total:
        text += f", limited to {format_gib(limit)}"
    low = min(available, limit or available) < LITTLE_MEMORY
    return Check("Memory", "warning" if low else "ok", text,
                 "Each loader worker needs some hundred MB" if low else "")


def governor_check(governor: str | None) -> Check:
    if not governor:
        return Check("CPU governor", "absent", "not told by this system (usual in a virtual machine)")
    if governor == "powersave":
        return Check("CPU governor", "warning", "powersave: step times may vary",
                     "For measurements: sudo cpupower frequency-set -g performance")
    return Check("CPU governor", "ok", governor)


def container_check(root: Path, env: Mapping[str, str]) -> Check:
    """Whether this looks like a container, from the marks that engines leave."""
    marks = (("Docker", (root / ".dockerenv").exists()),
             ("Podman", (root / "run/.containerenv").exists()),
             ("Kubernetes", "KUBERNETES_SERVICE_HOST" in env),
             ("Apptainer", "APPTAINER_CONTAINER" in env or "SINGULARITY_CONTAINER" in env),
             (env.get("container", ""), bool(env.get("container"))))
    found = [name for name, there in marks if there]
    return Check("Container", "ok", f"{', '.join(found)}: cores and memory may be limited" if found
                 else "none recognised")


def display_check(env: Mapping[str, str], platform: str) -> Check:
    if not platform.startswith("linux"):
        return Check("Display", "ok", "the system's")
    for name in ("WAYLAND_DISPLAY", "DISPLAY"):
        if env.get(name):
            return Check("Display", "ok", f"{name}={env[name]}")
    return Check("Display", "absent", "none: the window cannot be shown here",
                 "stepscope demo --headless works without one")
