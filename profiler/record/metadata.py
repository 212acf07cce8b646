"""What a run says about where it was recorded: machine, versions, environment, git."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from profiler.machine import container, cpu_quota, memory_limit
from profiler.machine import platform as odd_platform
from profiler.version import version

_WANTED = re.compile(
    r"(CUDA|NVIDIA|NCCL|TORCH|PYTORCH|OMP|MKL|OPENBLAS|PYTHON|GLIBC_TUNABLES|MALLOC_|SLURM|TRITON|CUDNN|CUBLAS|GLOO|KMP"
    r"|HIP_|HSA_|ROCR_|ROCM_|ROCBLAS_|RCCL_|MIOPEN_|GPU_DEVICE_ORDINAL|AMD_)"
    r"|(RANK|LOCAL_RANK|GROUP_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|CONDA_DEFAULT_ENV"
    r"|VIRTUAL_ENV|LD_PRELOAD)$"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that change how a training runs. Never one whose name looks secret."""
    return {name: env[name] for name in sorted(env) if _WANTED.match(name) and not _SECRET.search(name)}


def versions() -> dict[str, str]:
    """stepscope and Python; the sources and the probe add driver and torch."""
    return {"stepscope": version(), "python": platform.python_version()}


def machine() -> dict[str, Any]:
    """hostname, system, cpu, cores, memory_bytes; how many cores the affinity and a container's share allow,
    and how many bytes (None without one); the kind of container, WSL or Jetson; whether memory comes in huge
    pages: always, madvise, never, None where unknown."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:
        usable = os.cpu_count() or 1
    return {
        "hostname": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_name(),
        "cores": os.cpu_count() or 1,
        "cores_usable": usable,
        "cores_quota": cpu_quota(),
        "huge_pages": _huge_pages(),
        "memory_bytes": psutil.virtual_memory().total,
        "memory_limit": limit[0] if (limit := memory_limit()) else None,
        "container": container(),
        "platform": found[1] if (found := odd_platform()) else None,
    }


def _huge_pages() -> str | None:
    with suppress(OSError):
        told = re.search(r"\[(\w+)\]", Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text())
        return told.group(1) if told else None
    return None


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def git(folder: Path, timeout_s: float = 5.0) -> dict[str, Any] | None:
    """commit, branch (None when detached), dirty of the checkout around `folder`; None outside one.

    Asks git itself and takes no lock in the user's checkout. Untracked files are not looked for.
    """
    commit = _git(folder, timeout_s, "rev-parse", "HEAD")
    if not commit:
        return None
    branch = _git(folder, timeout_s, "symbolic-ref", "--short", "-q", "HEAD")
    status = _git(folder, timeout_s, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "branch": branch or None, "dirty": None if status is None else bool(status)}


def _git(folder: Path, timeout_s: float, *args: str) -> str | None:
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *args]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return done.stdout.decode("utf-8", "replace").strip()
