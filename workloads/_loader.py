"""Batches: the loader over a dataset, and their way to the device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from workloads._common import WorkloadError
from workloads._faults import Faults
from workloads._ranks import ranks, share
from workloads._settings import CommonSettings


def make_loader(dataset: Any, settings: CommonSettings, faults: Faults | None = None, **options: Any) -> Any:
    """A shuffling DataLoader over `dataset` with the loader's settings, in an order that the seed fixes.

    `options` are further arguments of DataLoader.
    """
    import torch
    from torch.utils.data import DataLoader

    faults = faults or Faults(settings)
    if len(dataset) < settings.batch_size * ranks():
        raise WorkloadError(f"one batch of {settings.batch_size} is more than all {len(dataset)} samples",
                            "Use a smaller batch_size or more data")
    options = faults.loader({
        "batch_size": settings.batch_size, "drop_last": True, "num_workers": settings.workers,
        "prefetch_factor": settings.prefetch_factor,
        "pin_memory": settings.pin_memory, "persistent_workers": settings.persistent_workers,
        "generator": torch.Generator().manual_seed(settings.seed),
        **share(dataset, settings.seed), **options})
    if not options["num_workers"]:
        options |= {"prefetch_factor": None, "persistent_workers": False}
    return DataLoader(faults.dataset(dataset), **options)


class Batches:
    """Epoch after epoch of a loader's batches on the device, each a tuple of tensors.

    Parts that are no tensors come after those that are, and stay on the host.
    """

    def __init__(self, loader: Any, settings: CommonSettings, device: Any, faults: Faults) -> None:
        self.loader, self.settings, self.device, self.faults = loader, settings, device, faults
        self.index = count()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if self.settings.prefetch_to_device:
            yield from self._ahead()
            return
        for batch in self.loader:
            yield self._moved(self._host(batch))[:len(batch)]  # not what a fault added

    def epoch(self, number: int) -> Iterator[tuple[Any, ...]]:
        """The batches of one epoch, which is told to a sampler that shares them among ranks."""
        if hasattr(self.loader.sampler, "set_epoch"):
            self.loader.sampler.set_epoch(number)
        return iter(self)

    def _host(self, batch: Any) -> tuple[Any, ...]:
        shapes = [part.shape for part in batch if hasattr(part, "shape")]
        batch = self.faults.batch(tuple(batch), next(self.index))
        if self.settings.static_shapes:
            filled = tuple(_filled(part, shape, of) for of, part, shape in zip(count(), batch, shapes))
            batch = filled + batch[len(shapes):]
        return batch

    def _moved(self, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        import torch

        layout = torch.channels_last if getattr(self.settings, "channels_last", False) else None
        return tuple(part.to(self.device, non_blocking=self.settings.non_blocking,
                             memory_format=layout if layout and part.dim() == 4 else torch.preserve_format)
                     if isinstance(part, torch.Tensor) else part for part in batch)

    def _ahead(self) -> Iterator[tuple[Any, ...]]:
        """Each batch is copied while the device works on the one before it."""
        import torch

        stream = torch.cuda.Stream(self.device)
        ready: tuple[Any, ...] = ()
        for batch in self.loader:
            if ready:
                self._take(ready, stream)  # before the next copy begins: this one alone is waited for
            with torch.cuda.stream(stream):
                coming = self._moved(self._host(batch))
            if ready:
                yield ready
            ready = coming[:len(batch)]
        if ready:
            self._take(ready, stream)
            yield ready

    def _take(self, batch: tuple[Any, ...], stream: Any) -> None:
        """The loop's stream waits for the copies, and keeps their memory while it uses them."""
        import torch

        current = torch.cuda.current_stream(self.device)
        current.wait_stream(stream)
        for part in batch:
            if isinstance(part, torch.Tensor):
                part.record_stream(current)


def _filled(part: Any, shape: Any, of: int) -> Any:
    """Part `of` of a batch up to `shape`: inputs with zeros, labels with -100, which no loss counts."""
    from torch.nn.functional import pad

    if part.shape == shape:
        return part
    missing = [n for have, want in zip(reversed(part.shape), reversed(shape)) for n in (0, want - have)]
    return pad(part, missing, value=-100 if of and not part.is_floating_point() else 0)
