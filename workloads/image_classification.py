"""ResNet, ViT or MobileNet on JPEG files.

Training as it is done on ImageNet: each file is read, decoded, cropped and
flipped at random (with colour jitter and RandAugment when asked for), batched by
a DataLoader, copied to the device, and the network takes one step of SGD. The
files are made once, or they are the user's own (--data): a folder with one folder
per class, or a flat one, whose labels are then made up.

On a GPU a few workers are rarely enough for a small network (input_bound); with
enough of them, or with decode=gpu, it is compute_bound. On a CPU it is
compute_bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads._device import start
from workloads._images import ImageFiles, JpegFiles, augmentation, check_network, network, undecoded
from workloads._pictures import SUFFIXES, made_pictures
from workloads._settings import TrainingSettings, check_common, setting, with_faults
from workloads._store import check_folder
from workloads._training import checkpoint_activations, optimizer_options, train

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
# Gradients of 45 MB are fetched anew in each step where no larger block keeps them from being given back.
HEALTHY: dict[str, Any] = {"threads": 1, "workers": 1, "persistent_workers": True, "batch_size": 4,
                           "image_size": 128}


@with_faults
@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the image classification: the common ones, the network and the images."""

    model: str = setting(
        "resnet50", "Model", "the torchvision network", group="Model and data",
        choices=(
            "resnet18", "resnet34", "resnet50", "resnet101", "vit_b_16", "mobilenet_v3_small",
            "mobilenet_v3_large"))
    images: int = setting(
        1024, "Images made", "JPEG files of 400 x 320 pixels, made once; not used with --data",
        group="Model and data", unit="files", minimum=10, maximum=100_000)
    image_size: int = setting(
        224, "Image size", "side of the square that the network sees", group="Model and data", unit="px",
        minimum=32, maximum=1024)
    batch_size: int = setting(
        64, "Batch size", "samples in one step", group="Model and data", unit="samples", minimum=1,
        maximum=65536, order=1)
    random_crop: bool = setting(
        True, "Random crop", "cut each image at random and resize it; else from its middle",
        group="Model and data")
    colour_jitter: float = setting(
        0.0, "Colour jitter", "how far brightness, contrast, saturation and hue change; 1 is usual",
        group="Model and data", minimum=0.0, maximum=2.0)
    rand_augment: int = setting(
        0, "RandAugment", "random operations on each image; 2 is usual", group="Model and data",
        unit="operations", minimum=0, maximum=14)
    decode: str = setting(
        "cpu", "Decoding", "by the loader on the CPU, or by the GPU, where augmenting goes on too; JPEG only",
        group="Loader", choices=("cpu", "gpu"), order=1)
    channels_last: bool = setting(
        False, "Channels last", "keep images and weights in the memory layout that tensor cores like",
        group="Compute")


def check(settings: Settings) -> dict[str, str]:
    """Settings that exclude each other, with the reason."""
    varied = getattr(settings, "variable_shapes", 0) > 0
    problems = check_common(settings) | check_network(settings.model, settings.image_size, varied)
    if varied and settings.decode == "gpu":
        problems["variable_shapes"] = "needs decode=cpu: it cuts what comes from the loader"
    return problems


def check_data(path: Path) -> None:
    """WorkloadError unless `path` is a readable folder with images."""
    check_folder(path, SUFFIXES)


def blocks_of(model: Any) -> list[Any]:
    """The repeated parts of a network, one after the other."""
    if hasattr(model, "encoder"):
        return list(model.encoder.layers)
    if hasattr(model, "features"):
        return list(model.features)
    return [block for layer in (model.layer1, model.layer2, model.layer3, model.layer4) for block in layer]


def run(settings: Settings, data: Path | None = None) -> None:
    """Train until `settings.steps`, on the images in `data` or on made ones."""
    import torch
    from torch.nn.functional import cross_entropy

    device = start(settings, suits_cpu=settings.model in ("resnet18", "mobilenet_v3_small"))
    layout = torch.channels_last if settings.channels_last else torch.contiguous_format
    folder = data or made_pictures(settings.images, 320, 400)
    transform = augmentation(settings.image_size, settings.random_crop, settings.colour_jitter,
                             settings.rand_augment)
    on_gpu = settings.decode == "gpu"
    dataset: Any = JpegFiles(folder, transform) if on_gpu else ImageFiles(folder, transform)
    model = network(settings.model, settings.image_size, num_classes=len(dataset.classes))
    model = model.to(device, memory_format=layout)
    if settings.activation_checkpointing:
        checkpoint_activations(blocks_of(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * settings.batch_size / 256, momentum=0.9,
                                weight_decay=1e-4, **optimizer_options(settings))

    def loss_of(forward: Any, images: Any, labels: Any) -> Any:
        return cross_entropy(forward(images), labels)

    def loss_of_files(forward: Any, labels: Any, files: Any, paths: Any) -> Any:
        images = dataset.decoded(files, paths, device)
        return cross_entropy(forward(images.contiguous(memory_format=layout)), labels)

    if on_gpu:
        train(settings, device, dataset, model, optimizer, loss_of_files, unit=UNIT, collate_fn=undecoded)
    else:
        train(settings, device, dataset, model, optimizer, loss_of, unit=UNIT)
