"""What kind of machine this is, and what of it control groups leave: cores' time, memory.

A container or a job has a share of a machine whose counts of cores and memory it sees in full.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

CGROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
UNLIMITED = 1 << 60  # bytes, from which a limit is none; version 1 writes one near 2**63
_ENGINES = ((r"docker", "Docker"), (r"libpod", "Podman"), (r"kubepods", "Kubernetes"), (r"/lxc[/.]", "LXC"),
            (r"containerd", "containerd"))  # as they name their control groups


def read(path: Path) -> str | None:
    """The text of a small file of the kernel's; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \n\t")
    except OSError:
        return None


def _groups(root: Path, own: str, controller: str) -> Iterator[Path]:
    """Folders of our group and all groups above it, as seen here, in version 2 and version 1.

    `own` is the text of /proc/self/cgroup. A container without a namespace for groups reads the host's path
    there, and finds its own group as the root.
    """
    for line in own.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            bases = [root]
        elif controller in controllers.split(","):
            bases = [root / controllers, root / controller]
        else:
            continue
        for base in bases:
            group = base / path.lstrip("/")
            yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(base))


def cpu_quota(root: Path = CGROUPS, own: str | None = None) -> float | None:
    """Cores' worth of time that control groups grant; None without a limit."""
    limits = []
    for folder in _groups(root, _own(own), "cpu"):
        quota, _, period = (read(folder / "cpu.max") or "").partition(" ")
        if not quota:
            quota, period = (read(folder / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period"))
        if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):  # "max", "-1": no limit
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory_limit(root: Path = CGROUPS, own: str | None = None) -> tuple[int, int | None] | None:
    """Bytes that control groups grant, and those used of them; None without a limit.

    Of several limits the one of which least is left. Pages of files that can be given back are not used.
    """
    found = []
    for folder in _groups(root, _own(own), "memory"):
        for limit, usage, inactive in (("memory.max", "memory.current", "inactive_file"),
                                       ("memory.limit_in_bytes", "memory.usage_in_bytes",
                                        "total_inactive_file")):
            text = read(folder / limit) or ""
            if text.isdecimal() and int(text) < UNLIMITED:
                found.append((int(text), _used(folder, usage, inactive)))
    return min(found, key=lambda item: item[0] - (item[1] or 0), default=None)


def _used(folder: Path, usage: str, inactive: str) -> int | None:
    used = read(folder / usage) or ""
    if not used.isdecimal():
        return None
    given = re.search(rf"^{inactive} (\d+)$", read(folder / "memory.stat") or "", re.MULTILINE)
    return max(0, int(used) - (int(given[1]) if given else 0))


def _own(text: str | None) -> str:
    return text if text is not None else (read(OWN) or "") + "\n0::/\n"


def container(root: Path = Path("/"), env: Mapping[str, str] = os.environ) -> str | None:
    """Which kind of container this looks like, from the marks that engines leave; None outside one."""
    told = read(root / "proc/self/cgroup") or ""
    marks = (("Docker", (root / ".dockerenv").exists()),
             ("Podman", (root / "run/.containerenv").exists()),
             ("Kubernetes", "KUBERNETES_SERVICE_HOST" in env),
             ("Apptainer", "APPTAINER_CONTAINER" in env or "SINGULARITY_CONTAINER" in env),
             *((name, bool(re.search(mark, told))) for mark, name in _ENGINES),
             (env.get("container", ""), bool(env.get("container"))))
    return ", ".join(dict.fromkeys(name for name, there in marks if there)) or None


def platform(root: Path = Path("/")) -> tuple[str, str] | None:
    """(kind, name) of a machine on which the driver tells less than usual: wsl, jetson; None elsewhere."""
    kernel = read(root / "proc/version") or ""
    if "microsoft" in kernel.lower():
        return "wsl", "WSL 2" if "wsl2" in kernel.lower() or "microsoft-standard" in kernel else "WSL 1"
    model = read(root / "proc/device-tree/model") or ""
    release = re.match(r"# (R\d+).*?REVISION: ([\d.]+)", read(root / "etc/nv_tegra_release") or "")
    if release or re.search(r"jetson|tegra", model, re.IGNORECASE):
        system = f", Linux for Tegra {release[1]}.{release[2]}" if release else ""
        return "jetson", f"{model or 'Jetson'}{system}"
    return None
