"""Several processes that train one model together, as torchrun starts them. Alone there is one rank."""

from __future__ import annotations

import os
from typing import Any


def ranks() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank_of() -> int:
    """Which of them this one is, from 0."""
    return int(os.environ.get("RANK", "0"))


def device_name(name: str) -> str:
    """The device that the launcher means for this rank, when the settings name no single one."""
    if ranks() > 1 and name in ("auto", "cuda"):
        import torch

        if torch.cuda.is_available():
            return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return name


def join(device: Any) -> None:
    """Meet the other ranks, when there are some."""
    if ranks() > 1:
        import torch

        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def leave() -> None:
    """Part from the other ranks."""
    import torch

    if ranks() > 1 and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def together(model: Any) -> Any:
    """The model whose gradients are averaged over all ranks."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model) if ranks() > 1 else model


def share(dataset: Any, seed: int) -> dict[str, Any]:
    """Arguments of DataLoader: in which order, and which samples are this rank's."""
    from torch.utils.data import DistributedSampler

    if ranks() == 1:
        return {"shuffle": True}
    return {"sampler": DistributedSampler(
        dataset, num_replicas=ranks(), rank=rank_of(), shuffle=True, seed=seed, drop_last=True)}
