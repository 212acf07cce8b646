"""The training loop of the workloads, and what its settings do to a model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from typing import Any

from workloads._common import Progress, WorkloadError
from workloads._device import autocast
from workloads._faults import Faults
from workloads._loader import Batches, make_loader
from workloads._ranks import leave, ranks, together
from workloads._settings import CommonSettings, TrainingSettings


@dataclass(frozen=True)
class State:
    """What a fault may look at and use while a loop runs.

    `optimizer` is None where nothing is trained; `kept` is closed when the loop ends.
    """

    settings: CommonSettings
    device: Any
    model: Any
    optimizer: Any = None
    kept: ExitStack = field(default_factory=ExitStack)


def optimizer_options(settings: TrainingSettings) -> dict[str, bool]:
    """The arguments of a torch optimizer that choose how it updates."""
    return {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True},
            "per-parameter": {"foreach": False, "fused": False}}[settings.optimizer]


def checkpoint_activations(blocks: Any) -> None:
    """Let each of these modules keep only its input, and compute the rest again in backward."""
    from torch.utils.checkpoint import checkpoint

    for block in blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def forward_of(model: Any, settings: CommonSettings) -> Callable[..., Any]:
    """What the loop calls for the model: itself, compiled, or recorded as CUDA graphs at its first call."""
    import torch

    if settings.cuda_graphs and ranks() > 1:
        raise WorkloadError("CUDA graphs and several ranks do not go together here", "Use cuda_graphs=false")
    forward: Callable[..., Any] = model
    if settings.compile != "off":
        forward = torch.compile(model, mode=settings.compile)
    return Graphed(forward) if settings.cuda_graphs else forward


class Graphed:
    """A module whose kernels, forward and backward, are recorded at the first call and then replayed."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward, self.recorded = forward, False

    def __call__(self, *inputs: Any) -> Any:
        import torch

        if not self.recorded:
            self.forward = torch.cuda.make_graphed_callables(self.forward, tuple(x.clone() for x in inputs))
            self.recorded = True
        return self.forward(*inputs)


def train(settings: TrainingSettings, device: Any, dataset: Any, model: Any, optimizer: Any,
          loss_of: Callable[..., Any], *, unit: str, per_sample: int = 1, **options: Any) -> None:
    """Train until `settings.steps`.

    `loss_of(forward, *batch)` is the loss of one batch on the device; `optimizer`
    is that of the model's parameters; `per_sample`: how many of `unit` are in one
    sample; `options` are further arguments of the DataLoader.
    """
    import torch

    faults = Faults(settings)
    loader = make_loader(dataset, settings, faults, **options)
    model = together(faults.model(model))
    forward = forward_of(model, settings)
    scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "float16")
    state = State(settings, device, model, optimizer)
    progress = Progress(settings.steps, settings.batch_size * per_sample, unit)
    batches = Batches(loader, settings, device, faults)
    state.kept.callback(leave)
    with state.kept:
        for batch in chain.from_iterable(map(batches.epoch, count())):
            if progress.step % settings.accumulate == 0:
                optimizer.zero_grad()
            with autocast(settings, device):
                loss = loss_of(forward, *batch)
            scaler.scale(loss / settings.accumulate).backward()
            if (progress.step + 1) % settings.accumulate == 0:
                faults.before_step(state, progress.step)
                scaler.step(optimizer)
                scaler.update()
            faults.after_step(state, progress.step)
            if progress.update(loss):
                break
