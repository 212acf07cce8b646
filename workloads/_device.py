"""Where a workload runs: its device, the precision of its products, its seed and threads."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from shutil import which
from typing import Any

from workloads._common import WorkloadError
from workloads._faults import Faults
from workloads._ranks import device_name, join
from workloads._settings import CommonSettings, needs_gpu


def start(settings: CommonSettings, suits_cpu: bool) -> Any:
    """Seed, set the number of threads and the precision of products. Returns the torch.device to use.

    Says so when the device turns out to be a CPU that this takes long on (not `suits_cpu`).
    """
    import torch

    torch.manual_seed(settings.seed)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = pick_device(device_name(settings.device))
    if device.type != "cuda":
        _check_cpu(settings, device)
    if settings.compile != "off" and not any(map(which, ("cc", "gcc", "g++", "clang", "cl"))):
        raise WorkloadError("torch.compile needs a C++ compiler, and none was found", "Use compile=off")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        tf32 = settings.precision == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = settings.cudnn_benchmark
    print(f"device {device}, precision {settings.precision}", flush=True)
    if device.type == "cpu" and settings.device == "auto" and not suits_cpu:
        print("no GPU was found, and on the CPU this takes long; size=smallest takes seconds",
              file=sys.stderr, flush=True)
    Faults(settings).start()
    join(device)
    return device


def _check_cpu(settings: CommonSettings, device: Any) -> None:
    """WorkloadError for the first setting that the device `auto` turned out to be cannot do."""
    for name, reason in needs_gpu(settings).items():
        value = str(getattr(settings, name))
        raise WorkloadError(f"{name}={value.lower()} cannot be used, the device is {device}: {reason}")


def pick_device(name: str) -> Any:
    """The torch.device for `auto`, `cpu`, `cuda` or `cuda:N`. WorkloadError when it is not there."""
    import torch

    count = torch.cuda.device_count() if name != "cpu" and torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not count):
        return torch.device("cpu")
    if not count:
        raise WorkloadError(f"there is no device {name}: PyTorch finds no CUDA device",
                            "Use device=cpu or device=auto")
    if name in ("auto", "cuda"):
        return torch.device("cuda", freest_gpu(count) if count > 1 else 0)
    index = int(name.partition(":")[2])
    if index >= count:
        raise WorkloadError(f"there is no device {name}: PyTorch finds {count} CUDA device(s)",
                            f"Use cuda:0 to cuda:{count - 1}" if count > 1 else "Use cuda:0")
    return torch.device("cuda", index)


def freest_gpu(count: int) -> int:
    """torch's index of the GPU with most free memory.

    Asked of nvidia-smi: torch's own query would open a context on every GPU.
    """
    import torch

    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=uuid,memory.free", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    free = {}
    for line in answer.splitlines():
        uuid, _, memory = line.partition(",")
        if memory.strip().isdigit():
            free[uuid.strip().lower().removeprefix("gpu-")] = int(memory)
    uuids = [str(getattr(torch.cuda.get_device_properties(i), "uuid", "")).lower() for i in range(count)]
    return max(range(count), key=lambda i: free.get(uuids[i].removeprefix("gpu-"), -1))


def autocast(settings: CommonSettings, device: Any) -> AbstractContextManager[Any]:
    """The context of the forward pass in the precision of the settings."""
    import torch

    if settings.precision in ("bfloat16", "float16"):
        # A recorded graph must not hold weights that were cast before it.
        return torch.autocast(device.type, getattr(torch, settings.precision),
                              cache_enabled=not settings.cuda_graphs)
    return nullcontext()
