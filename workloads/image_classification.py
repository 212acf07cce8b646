"""torchvision ResNet on JPEG files, decoded and augmented.

Training as it is done on ImageNet: each file is read, decoded, cropped and
flipped at random on the CPU, batched by a DataLoader, copied to the device, and
a ResNet takes one step of SGD. The files are made once, or they are the user's
own (--data): a folder with one folder per class, or a flat one, whose labels
are then made up.

On a GPU a few workers are rarely enough for a small ResNet (input_bound); with
enough of them it is compute_bound. On a CPU it is compute_bound.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads._common import WorkloadError
from workloads._device import start
from workloads._pictures import CLASSES, SUFFIXES, made_pictures
from workloads._settings import TrainingSettings, check_common, setting, with_faults
from workloads._store import check_folder, files_below
from workloads._training import optimizer_options, train

TITLE = "Image classification"
GROUP = "Vision"
ICON = "image"
UNIT = "samples"
DATA = "a folder of images, flat or with one folder per class"
SIZES: dict[str, dict[str, Any]] = {
    "smallest": {"model": "resnet18", "batch_size": 8, "image_size": 64, "images": 128, "steps": 30},
    "typical": {},
    "stress": {"model": "resnet101", "batch_size": 256, "images": 4096, "steps": 1000},
}


@with_faults
@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the image classification: the common ones, the network and the images."""

    model: str = setting(
        "resnet50", "Model", "the torchvision network", group="Model and data",
        choices=("resnet18", "resnet34", "resnet50", "resnet101"))
    images: int = setting(
        1024, "Images made", "JPEG files of 400 x 320 pixels, made once; not used with --data",
        group="Model and data", unit="files", minimum=10, maximum=100_000)
    image_size: int = setting(
        224, "Image size", "side of the square that the network sees", group="Model and data", unit="px",
        minimum=32, maximum=1024)
    batch_size: int = setting(
        64, "Batch size", "samples in one step", group="Model and data", unit="samples", minimum=1,
        maximum=65536, order=1)
    channels_last: bool = setting(
        False, "Channels last", "keep images and weights in the memory layout that tensor cores like",
        group="Compute")


class ImageFiles:
    """Image files with their classes: (float image [3, size, size], class), augmented at random."""

    def __init__(self, folder: Path, size: int) -> None:
        from torchvision.transforms import v2

        self.files = [str(path) for path in files_below(folder, SUFFIXES)]
        names = [Path(path).relative_to(folder).parts[0] for path in self.files]
        self.classes = sorted(set(names))
        if any(Path(path).parent == folder for path in self.files):
            print("the images lie flat: labels are made up", file=sys.stderr, flush=True)
            self.classes = [str(label) for label in range(CLASSES)]
            names = [str(index % CLASSES) for index in range(len(self.files))]
        number = {name: index for index, name in enumerate(self.classes)}
        self.labels = [number[name] for name in names]
        self.transform = v2.Compose([
            v2.RandomResizedCrop(size, scale=(0.35, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(_float32(), scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        try:
            with Image.open(self.files[index]) as file:
                image = file.convert("RGB")
        except OSError as error:
            raise WorkloadError(f"cannot decode the image {self.files[index]}: {error}") from error
        return self.transform(image), self.labels[index]


def _float32() -> Any:
    import torch

    return torch.float32


def check(settings: Settings) -> dict[str, str]:
    """Settings that exclude each other, with the reason."""
    return check_common(settings)


def check_data(path: Path) -> None:
    """WorkloadError unless `path` is a readable folder with images."""
    check_folder(path, SUFFIXES)


def run(settings: Settings, data: Path | None = None) -> None:
    """Train until `settings.steps`, on the images in `data` or on made ones."""
    import torch
    import torchvision
    from torch.nn.functional import cross_entropy

    device = start(settings, suits_cpu=settings.model == "resnet18")
    layout = torch.channels_last if settings.channels_last else torch.contiguous_format
    dataset = ImageFiles(data or made_pictures(settings.images, 320, 400), settings.image_size)
    model = getattr(torchvision.models, settings.model)(num_classes=len(dataset.classes))
    model = model.to(device, memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * settings.batch_size / 256, momentum=0.9,
                                weight_decay=1e-4, **optimizer_options(settings))

    def loss_of(forward: Any, images: Any, labels: Any) -> Any:
        return cross_entropy(forward(images), labels)

    train(settings, device, dataset, model, optimizer, loss_of, unit=UNIT)
