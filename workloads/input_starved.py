"""Slow storage starves any machine.

The tour: a small convolutional network on JPEG files that come from slow
storage. Each file arrives a few milliseconds after it is asked for, as from a
network file system or an object store (the wait is a sleep; reading and
decoding are real). With 0 workers the loop itself waits for every file of the
batch, and most of a step is data wait. Workers wait side by side, so two of
them already about halve it, also where there are only two CPU cores.

Expected verdict: input_bound. Remedy: workers=2 or more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads._device import start
from workloads._pictures import CLASSES, made_pictures
from workloads._settings import TrainingSettings, check_common, setting, with_faults
from workloads._training import optimizer_options, train

TITLE = "Input-starved demo"
GROUP = "Start here"
ICON = "bolt"
UNIT = "samples"
TAGS = ("no GPU needed",)
SIZES: dict[str, dict[str, Any]] = {
    "smallest": {"steps": 60},
    "typical": {},
    "stress": {"batch_size": 32, "latency_ms": 10.0, "steps": 1000},
}


@with_faults
@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the tour: the common ones, and how slow the storage is."""

    batch_size: int = setting(
        8, "Batch size", "samples in one step", group="Model and data", unit="samples", minimum=1,
        maximum=256, order=1)
    steps: int = setting(
        300, "Stop after", "steps until the run ends by itself", group="Model and data", unit="steps",
        minimum=1, maximum=10_000_000, order=2)
    latency_ms: float = setting(
        5.0, "Storage latency", "time until a file arrives from storage", group="Loader", unit="ms",
        minimum=0.0, maximum=1000.0, order=-1)
    # Operators this small gain nothing from more threads, which fight with the workers for two cores.
    threads: int = setting(
        1, "CPU threads", "threads of one operator; 0 leaves the choice to PyTorch", group="Run",
        unit="threads", minimum=0, maximum=1024)


class SlowFiles:
    """JPEG files behind a latency: (uint8 image [3, 64, 64], class)."""

    def __init__(self, folder: Path, latency_ms: float) -> None:
        self.files = sorted(folder.glob("class_*/*.jpg"))
        self.latency_s = latency_ms / 1000

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import torch
        from PIL import Image

        path = self.files[index]
        time.sleep(self.latency_s)
        with Image.open(path) as file:
            image = file.convert("RGB").resize((64, 64))
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        return pixels.view(64, 64, 3).permute(2, 0, 1), int(path.parent.name[-1])


def small_network() -> Any:
    """A convolutional network of 0.1 M parameters: images [n, 3, 64, 64] in [0, 1] to logits [n, 10]."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 64, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, CLASSES),
    )


def check(settings: Settings) -> dict[str, str]:
    """Settings that exclude each other, with the reason."""
    return check_common(settings)


def run(settings: Settings, data: Path | None = None) -> None:
    """Train until `settings.steps`. It makes its own data; `data` is not used."""
    import torch
    from torch.nn.functional import cross_entropy

    device = start(settings, suits_cpu=True)
    dataset = SlowFiles(made_pictures(512, 96, 128), settings.latency_ms)
    model = small_network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, **optimizer_options(settings))

    def loss_of(forward: Any, images: Any, labels: Any) -> Any:
        return cross_entropy(forward(images.float() / 255), labels)

    train(settings, device, dataset, model, optimizer, loss_of, unit=UNIT)
