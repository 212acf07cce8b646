"""The GPUs that a run could use, and what they lack. None of it is asked here: the doctor knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AMPERE = 8.0  # compute capability from which on tensor cores take tf32 and bfloat16


@dataclass(frozen=True, slots=True)
class Gpu:
    """One that PyTorch can use. `capability` is its compute capability; None where nobody tells."""

    name: str
    capability: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """`gpus` in PyTorch's order; None while it is not known what there is."""

    gpus: tuple[Gpu, ...] | None = None

    def device(self, asked: str) -> str:
        """What `auto` comes to where that is known: cpu without a GPU."""
        return "cpu" if asked == "auto" and self.gpus == () else asked

    def gpu(self, asked: str) -> Gpu | None:
        """The one that a device's name means; None for the CPU, several, and those that are not there."""
        gpus = self.gpus or ()
        if asked.startswith("cuda:"):
            index = int(asked[5:]) if asked[5:].isdecimal() else len(gpus)
            return gpus[index] if index < len(gpus) else None
        return gpus[0] if asked in ("auto", "cuda") and len(gpus) == 1 else None


UNKNOWN = Machine()


def machine_of(told: Sequence[Mapping[str, Any]] | None) -> Machine:
    """From `gpus` of the doctor's answer."""
    if told is None:
        return UNKNOWN
    return Machine(tuple(Gpu(str(gpu.get("name")), gpu.get("compute_capability")) for gpu in told))


def lacking(machine: Machine, values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that this machine cannot fulfil: name -> reason."""
    device, precision = str(values.get("device", "auto")), values.get("precision")
    gpu = machine.gpu(device)
    if machine.gpus is not None and device.startswith("cuda") and gpu is None:
        if not machine.gpus:
            return {"device": "PyTorch finds no GPU here; auto and cpu work"}
        if device != "cuda":
            last = len(machine.gpus) - 1
            return {"device": f"there is no {device}; " + (f"cuda:0 to cuda:{last}" if last else "cuda:0")}
    if gpu and gpu.capability is not None and gpu.capability < AMPERE and precision == "tf32":
        return {"precision": f"{gpu.name} has no tf32: compute capability {gpu.capability:g}, not 8.0"}
    return {}


def slow(machine: Machine, values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that this machine fulfils in a slow way: name -> sentence."""
    gpu = machine.gpu(str(values.get("device", "auto")))
    emulated = gpu and gpu.capability is not None and gpu.capability < AMPERE
    if gpu and emulated and values.get("precision") == "bfloat16":
        return {"precision": f"{gpu.name} emulates bfloat16, which is slow"}
    return {}
