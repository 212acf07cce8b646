"""GPT-style decoder on bytes of text.

Pre-training in small: a decoder with scaled-dot-product attention predicts the
next byte of a text, by AdamW, with gradient accumulation and activation
checkpointing when asked for. The text is one memory-mapped file, made once, or
the user's own (--data): a file, or a folder whose text files are joined.

The loader only cuts windows out of memory, so a run is compute_bound, except
for small models on a fast GPU, which are launch_bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads._common import WorkloadError
from workloads._device import start
from workloads._settings import TrainingSettings, check_common, setting, with_faults
from workloads._text import check_text, made_text, one_file
from workloads._training import checkpoint_activations, optimizer_options, train

TITLE = "Language model"
GROUP = "Language"
ICON = "text"
UNIT = "tokens"
DATA = "a text file of any kind, or a folder of text files"
SIZES: dict[str, dict[str, Any]] = {
    "smallest": {"model": "tiny", "batch_size": 4, "context": 64, "steps": 50},
    "typical": {},
    "stress": {"model": "large", "batch_size": 32, "context": 1024, "precision": "bfloat16", "steps": 1000},
}
HEALTHY: dict[str, Any] = {"threads": 1}
MODELS = {  # layers, width, heads; in brackets the parameters
    "tiny": (2, 128, 4),  # 0.5 M
    "small": (6, 384, 6),  # 11 M
    "medium": (12, 768, 12),  # 86 M
    "large": (24, 1024, 16),  # 304 M
}


@with_faults
@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the language model: the common ones, the size of the model and its context."""

    model: str = setting(
        "small", "Model", "tiny 0.5 M, small 11 M, medium 86 M, large 304 M parameters",
        group="Model and data", choices=tuple(MODELS))
    context: int = setting(
        256, "Context", "tokens that the model sees at once", group="Model and data", unit="tokens",
        minimum=8, maximum=8192)
    batch_size: int = setting(
        16, "Batch size", "sequences in one step", group="Model and data", unit="sequences", minimum=1,
        maximum=65536, order=1)


class Windows:
    """Successive windows of a memory-mapped file of bytes: (tokens [context], next tokens [context])."""

    def __init__(self, path: Path, context: int) -> None:
        self.path, self.context, self.size = path, context, path.stat().st_size
        self.mapped: Any = None

    def __len__(self) -> int:
        return max(0, (self.size - 1) // self.context)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        import torch

        if self.mapped is None:
            self.mapped = torch.from_file(str(self.path), shared=False, size=self.size, dtype=torch.uint8)
        first = index * self.context
        window = self.mapped[first:first + self.context + 1].long()
        return window[:-1], window[1:]

    def __getstate__(self) -> dict[str, Any]:
        """The mapping stays behind when a worker is spawned: it opens its own."""
        return {**self.__dict__, "mapped": None}


def check(settings: Settings) -> dict[str, str]:
    """Settings that exclude each other, with the reason."""
    return check_common(settings)


def check_data(path: Path) -> None:
    """WorkloadError unless `path` is a readable file, or a folder with text files."""
    check_text(path)


def per_sample(settings: Settings) -> int:
    """Tokens in one sample."""
    return settings.context


def run(settings: Settings, data: Path | None = None) -> None:
    """Train until `settings.steps`, on the text in `data` or on made text."""
    import torch
    from torch.nn.functional import cross_entropy

    from workloads._gpt import GPT, Size

    device = start(settings, suits_cpu=settings.model == "tiny")
    dataset = Windows(one_file(data) if data else made_text(), settings.context)
    if not len(dataset):
        raise WorkloadError(f"{data or dataset.path} has {dataset.size} bytes, fewer than one context of "
                            f"{settings.context}", "Use more text or a smaller context")
    model = GPT(Size(*MODELS[settings.model]), settings.context).to(device)
    if settings.activation_checkpointing:
        checkpoint_activations(model.blocks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3 if settings.model == "tiny" else 3e-4,
                                  **optimizer_options(settings))

    def loss_of(forward: Any, tokens: Any, targets: Any) -> Any:
        return cross_entropy(forward(tokens).flatten(0, 1), targets.flatten())

    train(settings, device, dataset, model, optimizer, loss_of, unit=UNIT, per_sample=settings.context)
