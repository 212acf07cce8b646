"""What workloads share: their settings, and the plain helpers of a training loop.

Importing this does not import torch: the settings are read by programs that
only show them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from shutil import which
from typing import Any

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
GROUPS = ("Model and data", "Loader", "Compute", "Run")  # the order in forms


class WorkloadError(Exception):
    """A workload cannot run as asked: one line for the user, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint


def setting(default: Any, label: str, help: str, *, group: str, unit: str = "", minimum: float | None = None,
            maximum: float | None = None, choices: tuple[Any, ...] = (), order: int = 0) -> Any:
    """A field of a settings dataclass: what forms, `--set` and `stepscope workloads` know about it.

    `minimum` and `maximum` are included in the range; `order` sorts within the group.
    """
    return field(default=default, metadata={
        "label": label, "help": help, "group": group, "unit": unit, "minimum": minimum, "maximum": maximum,
        "choices": choices, "order": order})


@dataclass(frozen=True)
class CommonSettings:
    """Settings that every workload has, with the names PyTorch users know."""

    batch_size: int = setting(
        32, "Batch size", "samples in one step", group="Model and data", unit="samples", minimum=1,
        maximum=65536, order=1)
    steps: int = setting(
        200, "Stop after", "steps until the run ends by itself", group="Model and data", unit="steps",
        minimum=1, maximum=10_000_000, order=2)
    workers: int = setting(
        0, "Workers", "loader processes; 0 loads in the loop's own thread", group="Loader",
        unit="processes", minimum=0, maximum=256)
    prefetch_factor: int = setting(
        2, "Prefetch factor", "batches that each worker prepares ahead", group="Loader", unit="batches",
        minimum=1, maximum=64)
    pin_memory: bool = setting(
        False, "Pinned memory", "copy batches to page-locked memory, from which the GPU takes them fast",
        group="Loader")
    persistent_workers: bool = setting(
        False, "Persistent workers", "keep the workers from one epoch to the next", group="Loader")
    device: str = setting(
        "auto", "Device", "auto, cpu, cuda or cuda:N; auto takes the GPU with most free memory, else the CPU",
        group="Compute")
    precision: str = setting(
        "float32", "Precision", "bfloat16 and float16 by autocast, float16 with gradient scaling; "
        "tf32 is float32 on tensor cores", group="Compute", choices=PRECISIONS)
    compile: bool = setting(
        False, "torch.compile", "compile the model; the first steps then take long", group="Compute", order=1)
    seed: int = setting(
        0, "Repeat seed", "the same weights and the same order of data in every run", group="Run", minimum=0,
        maximum=2**31 - 1)
    threads: int = setting(
        0, "CPU threads", "threads of one operator; 0 leaves the choice to PyTorch", group="Run",
        unit="threads", minimum=0, maximum=1024)


def check_common(settings: CommonSettings) -> dict[str, str]:
    """Settings that exclude each other: name of the setting to change -> reason. Needs no torch."""
    problems = {}
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", settings.device):
        problems["device"] = f"{settings.device!r} is none of auto, cpu, cuda, cuda:N"
    if settings.device == "cpu" and settings.precision in ("tf32", "float16"):
        problems["precision"] = f"{settings.precision} needs a GPU; float32 and bfloat16 work on the CPU"
    changed = {"prefetch_factor": settings.prefetch_factor != 2,
               "persistent_workers": settings.persistent_workers}
    problems |= {name: why for name, why in not_applicable(settings).items() if changed.get(name)}
    return problems


def not_applicable(settings: CommonSettings) -> dict[str, str]:
    """Settings without a meaning beside the others: name -> reason. A form greys them out."""
    if settings.workers > 0:
        return {}
    return dict.fromkeys(("prefetch_factor", "persistent_workers"), "needs 1 worker or more")


def advise(settings: CommonSettings) -> dict[str, str]:
    """Settings that work and may surprise: name -> sentence."""
    advice = {}
    if settings.workers == 0:
        advice["workers"] = "0 loads in the loop's thread. Fine as a baseline."
    if settings.pin_memory and settings.device == "cpu":
        advice["pin_memory"] = "no effect without a GPU"
    return advice


def start(settings: CommonSettings, suits_cpu: bool) -> Any:
    """Seed, set the number of threads and the precision of products. Returns the torch.device to use.

    Says so when the device turns out to be a CPU that this takes long on (not `suits_cpu`).
    """
    import torch

    torch.manual_seed(settings.seed)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = pick_device(settings.device)
    if device.type != "cuda" and settings.precision in ("tf32", "float16"):
        raise WorkloadError(f"precision {settings.precision} needs a GPU, and the device is {device}",
                            "Use float32 or bfloat16")
    if settings.compile and not any(map(which, ("cc", "gcc", "g++", "clang", "cl"))):
        raise WorkloadError("torch.compile needs a C++ compiler, and none was found", "Use compile=false")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        tf32 = settings.precision == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
    print(f"device {device}, precision {settings.precision}", flush=True)
    if device.type == "cpu" and settings.device == "auto" and not suits_cpu:
        print("no GPU was found, and on the CPU this takes long; size=smallest takes seconds",
              file=sys.stderr, flush=True)
    return device


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


def make_loader(dataset: Any, settings: CommonSettings) -> Any:
    """A shuffling DataLoader over `dataset` with the loader's settings, in an order that the seed fixes."""
    import torch
    from torch.utils.data import DataLoader

    if len(dataset) < settings.batch_size:
        raise WorkloadError(f"one batch of {settings.batch_size} is more than all {len(dataset)} samples",
                            "Use a smaller batch_size or more data")
    return DataLoader(
        dataset, batch_size=settings.batch_size, shuffle=True, drop_last=True, num_workers=settings.workers,
        prefetch_factor=settings.prefetch_factor if settings.workers else None,
        pin_memory=settings.pin_memory, persistent_workers=settings.persistent_workers,
        generator=torch.Generator().manual_seed(settings.seed))


def autocast(settings: CommonSettings, device: Any) -> AbstractContextManager[Any]:
    """The context of the forward pass in the precision of the settings."""
    import torch

    if settings.precision in ("bfloat16", "float16"):
        return torch.autocast(device.type, getattr(torch, settings.precision))
    return nullcontext()


class Progress:
    """Counts steps and says about once a second, on stdout, how far the loop is and how the loss stands."""

    def __init__(self, steps: int, samples: int, unit: str = "samples") -> None:
        """`samples`: how many of `unit` one step takes."""
        self.steps, self.samples, self.unit = steps, samples, unit
        self.step = 0
        self.started = self.told = time.monotonic()

    def update(self, loss: Any) -> bool:
        """One step is done. True when it was the last one."""
        self.step += 1
        now = time.monotonic()
        last = self.step >= self.steps
        if last or self.step == 1 or now - self.told >= 1:
            self.told = now
            # The only read of the loss: each one waits for the device.
            print(f"step {self.step}/{self.steps} loss {loss.item():.4f}", flush=True)
        if last:
            self.finish()
        return last

    def finish(self) -> None:
        seconds = time.monotonic() - self.started
        rate = self.step * self.samples / seconds
        print(f"{self.step} steps in {seconds:.1f} s, {rate:.1f} {self.unit}/s over all of them", flush=True)


class Bar:
    """How far the making of data is, on stderr: a moving line on a terminal, else one every two seconds."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total = title, total
        self.terminal = sys.stderr.isatty()
        self.told = time.monotonic()

    def update(self, done: int) -> None:
        now = time.monotonic()
        if done < self.total and now - self.told < (0.1 if self.terminal else 2):
            return
        self.told = now
        text = f"{self.title} {done}/{self.total}"
        if not self.terminal:
            print(text, file=sys.stderr, flush=True)
            return
        print(f"\r{text}", end="\n" if done >= self.total else "", file=sys.stderr, flush=True)
