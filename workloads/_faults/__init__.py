"""Faults to order: each slows a run in one known way, and says which verdict that must bring.

One file a fault, found by this folder. Importing them does not import torch. A
fault's module has:

    NAME        the name of its file, and of the setting that is its dial
    TITLE       the label of the dial
    docstring   its first line is the help of the dial; then what it does, the rule
                and the verdict it must bring, the remedy, and the factor
    VERDICT     the word of the diagnosis; ON_CPU is that of a run on the CPU, where it differs
    RULE        the name of the rule whose finding names it
    STAGE       the stage that grows: data, h2d, forward, backward, optimizer, other
    REMEDY      (setting of the workload, value), or None where no setting helps
    FACTOR      (low, high): total wall time against the control at strength 1 on a CPU;
                None where it needs a GPU
    NEEDS       cpu (it acts anywhere), cuda, or ranks (several processes under torchrun)
    WORKLOADS   where it can act; FACTOR, CONTROL and FAULTY are for the first one
    CONTROL     settings of the healthy run beside it, over those of size=smallest
    FAULTY      settings beside the dial, over those of the control
    TRACE       True where its rule needs a trace window in the recording; else left out

and any of these hooks, called only while its dial is above 0:

    pointless(settings) -> str               why it cannot act beside these settings, or ""
    start(settings, strength)                before anything is made
    dataset(dataset, strength)               returns the dataset to use
    loader(options, strength)                returns the keyword arguments of DataLoader
    collate(function, strength)              returns the function that joins samples to a batch
    model(model, strength)                   returns the module to call
    batch(batch, index, strength)            returns the batch to use, a tuple of host tensors; what it
                                             adds at the end goes to the device and no further
    before_step(state, index, strength)      after backward, before the weights change
    after_step(state, index, strength)       at the end of the step

`state` has settings, device, model, optimizer (None where nothing is trained), and
`kept`, an ExitStack that is closed when the loop ends.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any

STRONGEST = 10.0  # of any dial; 1 is the default strength
TRAINING = ("language_model", "image_classification", "speech")
EVERY = (*TRAINING, "image_inference")


@cache
def names() -> tuple[str, ...]:
    """Every fault, in alphabetical order."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")))


def fault(name: str) -> ModuleType:
    """A fault's module."""
    return importlib.import_module(f"{__name__}.{name}")


def faults(workload: str) -> list[ModuleType]:
    """The faults that can act in a workload."""
    return [module for module in map(fault, names()) if workload in module.WORKLOADS]


def active(settings: Any) -> list[ModuleType]:
    """The faults whose dial is above 0."""
    return [fault(name) for name in names() if getattr(settings, name, 0) > 0]


def summary(module: ModuleType) -> str:
    """The first line of a fault's docstring, without its full stop."""
    return (module.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def pointless(module: ModuleType, settings: Any) -> str:
    """Why a fault cannot act beside these settings, or ""."""
    hook = getattr(module, "pointless", None)
    return hook(settings) if hook else ""


class Faults:
    """The faults of one run: each method calls the hooks of those whose dial is above 0."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.active = [(module, float(getattr(settings, module.NAME))) for module in active(settings)]

    def _hooks(self, hook: str) -> list[tuple[Any, float]]:
        return [(getattr(module, hook), strength) for module, strength in self.active
                if hasattr(module, hook)]

    def _through(self, hook: str, value: Any) -> Any:
        for call, strength in self._hooks(hook):
            value = call(value, strength)
        return value

    def start(self) -> None:
        """Before anything is made."""
        for call, strength in self._hooks("start"):
            call(self.settings, strength)

    def dataset(self, dataset: Any) -> Any:
        """The dataset to use in place of `dataset`."""
        return self._through("dataset", dataset)

    def loader(self, options: dict[str, Any]) -> dict[str, Any]:
        """The arguments of DataLoader."""
        options = self._through("loader", options)
        if self._hooks("collate"):
            from torch.utils.data import default_collate

            options["collate_fn"] = self._through("collate", options.get("collate_fn") or default_collate)
        return options

    def model(self, model: Any) -> Any:
        """The module to call in place of `model`."""
        return self._through("model", model)

    def batch(self, batch: Any, index: int) -> Any:
        """The batch to use in place of `batch`, before it goes to the device."""
        for call, strength in self._hooks("batch"):
            batch = call(batch, index, strength)
        return batch

    def before_step(self, state: Any, index: int) -> None:
        """After backward, before the weights change."""
        for call, strength in self._hooks("before_step"):
            call(state, index, strength)

    def after_step(self, state: Any, index: int) -> None:
        """At the end of a step."""
        for call, strength in self._hooks("after_step"):
            call(state, index, strength)
