"""The settings that workloads share, what each may be, and which exclude each other.

Importing this does not import torch: the settings are read by programs that
only show them.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workloads import _faults

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
COMPILE = ("off", "default", "reduce-overhead", "max-autotune")  # the modes of torch.compile
OPTIMIZERS = ("default", "foreach", "fused", "per-parameter")
GROUPS = ("Model and data", "Loader", "Compute", "Run", "Faults")  # the order in forms

T = TypeVar("T")


def setting(default: Any, label: str, help: str, *, group: str, unit: str = "", minimum: float | None = None,
            maximum: float | None = None, choices: tuple[Any, ...] = (), order: int = 0,
            aliases: dict[str, Any] | None = None) -> Any:
    """A field of a settings dataclass: what forms, `--set` and `stepscope workloads` know about it.

    `minimum` and `maximum` are included in the range; `order` sorts within the
    group; `aliases` are other spellings of a choice.
    """
    return field(default=default, metadata={
        "label": label, "help": help, "group": group, "unit": unit, "minimum": minimum, "maximum": maximum,
        "choices": choices, "order": order, "aliases": aliases or {}})


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
    non_blocking: bool = setting(
        True, "Non-blocking copies", "the loop goes on while a pinned batch is copied to the GPU",
        group="Loader")
    prefetch_to_device: bool = setting(
        False, "Prefetch to device", "copy each batch one step ahead on a stream of its own, from pinned "
        "memory", group="Loader")
    device: str = setting(
        "auto", "Device", "auto, cpu, cuda or cuda:N; auto takes the GPU with most free memory, else the CPU",
        group="Compute")
    precision: str = setting(
        "float32", "Precision", "bfloat16 and float16 by autocast, float16 with gradient scaling; "
        "tf32 is float32 on tensor cores", group="Compute", choices=PRECISIONS)
    compile: str = setting(
        "off", "torch.compile", "compile the model, in one of torch's modes; the first steps then take long",
        group="Compute", choices=COMPILE, order=1,
        aliases={**dict.fromkeys(("true", "yes", "on", "1"), "default"),
                 **dict.fromkeys(("false", "no", "0"), "off")})
    cuda_graphs: bool = setting(
        False, "CUDA graphs", "record the model's kernels once and replay them with one launch",
        group="Compute", order=1)
    cudnn_benchmark: bool = setting(
        False, "cuDNN benchmark", "search the fastest convolution for each new shape", group="Compute",
        order=2)
    static_shapes: bool = setting(
        False, "Static shapes", "fill batches up to one shape, where samples differ in size",
        group="Compute", order=2)
    seed: int = setting(
        0, "Repeat seed", "the same weights and the same order of data in every run", group="Run", minimum=0,
        maximum=2**31 - 1)
    threads: int = setting(
        0, "CPU threads", "threads of one operator; 0 leaves the choice to PyTorch", group="Run",
        unit="threads", minimum=0, maximum=1024)


@dataclass(frozen=True)
class TrainingSettings(CommonSettings):
    """Settings of workloads that train."""

    accumulate: int = setting(
        1, "Accumulation", "batches whose gradients are added before the weights change", group="Compute",
        unit="batches", minimum=1, maximum=1024, order=3)
    activation_checkpointing: bool = setting(
        False, "Activation checkpointing", "compute activations again in backward instead of keeping them: "
        "less memory, more work", group="Compute", order=3)
    optimizer: str = setting(
        "default", "Optimizer kernels", "how the optimizer updates: all parameters in one fused kernel, in a "
        "few for-each kernels, or one parameter after the other; default leaves the choice to PyTorch",
        group="Compute", choices=OPTIMIZERS, order=3)


def with_faults(settings: type[T]) -> type[T]:
    """A decorator for a workload's Settings: adds a dial for each fault that can act in the workload."""
    workload = settings.__module__.rpartition(".")[2]
    dials = [(fault.NAME, "float", setting(
        0.0, fault.TITLE, _faults.summary(fault), group="Faults", minimum=0.0, maximum=_faults.STRONGEST))
        for fault in _faults.faults(workload)]
    made: Any = dataclasses.make_dataclass(settings.__name__, dials, bases=(settings,), frozen=True)
    made.__module__, made.__doc__ = settings.__module__, settings.__doc__
    return made


def check_common(settings: CommonSettings) -> dict[str, str]:
    """Settings that exclude each other: name of the setting to change -> reason. Needs no torch."""
    problems = {}
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", settings.device):
        problems["device"] = f"{settings.device!r} is none of auto, cpu, cuda, cuda:N"
    if settings.prefetch_to_device and not settings.pin_memory:
        problems["prefetch_to_device"] = "needs pin_memory: from pageable memory a copy waits for the device"
    if settings.cuda_graphs:
        problems |= _beside_graphs(settings)
    if settings.device == "cpu":
        problems |= needs_gpu(settings)  # nothing else helps
    defaults = {f.name: f.default for f in dataclasses.fields(settings)}
    changed = {name for name, default in defaults.items() if getattr(settings, name) != default}
    return {name: why for name, why in not_applicable(settings).items() if name in changed} | problems


def needs_gpu(settings: CommonSettings) -> dict[str, str]:
    """Settings that only a GPU can do: name -> reason. Faults that need one are among them."""
    problems = {}
    if settings.precision in ("tf32", "float16"):
        problems["precision"] = f"{settings.precision} needs a GPU; float32 and bfloat16 work on the CPU"
    for name in ("cuda_graphs", "prefetch_to_device"):
        if getattr(settings, name):
            problems[name] = "needs a GPU"
    if getattr(settings, "decode", "cpu") == "gpu":
        problems["decode"] = "needs a GPU"
    for fault in _faults.active(settings):
        if fault.NEEDS == "cuda":
            problems[fault.NAME] = "needs a GPU: on the CPU there is nothing for it to slow"
    return problems


def _beside_graphs(settings: CommonSettings) -> dict[str, str]:
    """What a recorded graph excludes: it repeats the same kernels on the same memory."""
    problems = {}
    if settings.compile in ("reduce-overhead", "max-autotune"):
        problems["compile"] = f"{settings.compile} makes CUDA graphs itself; use off or default"
    if getattr(settings, "accumulate", 1) > 1:
        problems["accumulate"] = "a CUDA graph writes each batch's gradients over those of the last one"
    if getattr(settings, "activation_checkpointing", False):
        problems["activation_checkpointing"] = "cannot be recorded as a CUDA graph"
    if getattr(settings, "variable_shapes", 0) and not settings.static_shapes:
        problems["cuda_graphs"] = "needs static_shapes where shapes vary"
    return problems


def not_applicable(settings: CommonSettings) -> dict[str, str]:
    """Settings without a meaning beside the others: name -> reason. A form greys them out."""
    off = {}
    if settings.workers == 0:
        off = dict.fromkeys(("prefetch_factor", "persistent_workers"), "needs 1 worker or more")
    for fault in _faults.faults(type(settings).__module__.rpartition(".")[2]):
        if reason := _faults.pointless(fault, settings):
            off[fault.NAME] = reason
    return off


def advise(settings: CommonSettings) -> dict[str, str]:
    """Settings that work and may surprise: name -> sentence."""
    advice = {}
    if settings.workers == 0:
        advice["workers"] = "0 loads in the loop's thread. Fine as a baseline."
    if settings.device == "cpu":
        for name in ("pin_memory", "cudnn_benchmark"):
            if getattr(settings, name):
                advice[name] = "no effect without a GPU"
    return advice
