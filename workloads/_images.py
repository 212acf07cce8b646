"""Image files with their classes, decoded in the loader or on the GPU, and augmented."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workloads._common import WorkloadError
from workloads._pictures import CLASSES, SUFFIXES
from workloads._store import files_below

JPEG = (".jpg", ".jpeg")


def augmentation(size: int, crop: bool, jitter: float, random_operations: int) -> Callable[[Any], Any]:
    """The transform of one image, a PIL image or a uint8 tensor [3, h, w], to a float one [3, size, size].

    `crop`: cut at random, else from the middle; `jitter`: how far colours change;
    `random_operations`: how many of RandAugment.
    """
    import torch
    from torchvision.transforms import v2

    cut = [v2.RandomResizedCrop(size, scale=(0.35, 1.0), antialias=True)]
    if not crop:
        cut = [v2.Resize(size * 256 // 224, antialias=True), v2.CenterCrop(size)]
    colours = [v2.ColorJitter(0.4 * jitter, 0.4 * jitter, 0.4 * jitter, 0.1 * jitter)] if jitter else []
    return v2.Compose([
        *cut,
        v2.RandomHorizontalFlip(),
        *colours,
        *([v2.RandAugment(random_operations)] if random_operations else []),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        v2.ToPureTensor(),
    ])


def opened(path: str) -> Any:
    """The PIL image in a file, decoded. WorkloadError when it is none."""
    from PIL import Image

    try:
        with Image.open(path) as file:
            return file.convert("RGB")
    except Exception as error:  # decoders raise anything at broken files, Pillow itself at huge ones
        raise _undecodable(path, error) from error


def check_network(model: str, image_size: int, varied: bool) -> dict[str, str]:
    """What a torchvision network cannot do: setting -> reason. `varied`: images come in several sizes."""
    problems = {}
    if model == "vit_b_16" and image_size % 16:
        problems["image_size"] = "vit_b_16 needs a multiple of 16"
    if model == "vit_b_16" and varied:
        problems["variable_shapes"] = "vit_b_16 takes images of one size only"
    return problems


def network(model: str, image_size: int, **options: Any) -> Any:
    """The torchvision network of this name with new weights."""
    import torchvision

    sized = {"image_size": image_size} if model == "vit_b_16" else {}
    return getattr(torchvision.models, model)(**sized, **options)


class ImageFiles:
    """Image files with their classes: (float image [3, size, size], class), decoded by the CPU."""

    def __init__(self, folder: Path, transform: Callable[[Any], Any]) -> None:
        self.files = [str(path) for path in files_below(folder, SUFFIXES)]
        names = [Path(path).relative_to(folder).parts[0] for path in self.files]
        self.classes = sorted(set(names))
        if any(Path(path).parent == folder for path in self.files):
            print("the images lie flat: labels are made up", file=sys.stderr, flush=True)
            self.classes = [str(label) for label in range(CLASSES)]
            names = [str(index % CLASSES) for index in range(len(self.files))]
        number = {name: index for index, name in enumerate(self.classes)}
        self.labels = [number[name] for name in names]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(opened(self.files[index])), self.labels[index]


class JpegFiles(ImageFiles):
    """JPEG files with their classes, as they are: (class, bytes, path). The GPU decodes them."""

    def __init__(self, folder: Path, transform: Callable[[Any], Any]) -> None:
        super().__init__(folder, transform)
        other = next((path for path in self.files if not path.lower().endswith(JPEG)), None)
        if other:
            raise WorkloadError(f"the GPU decodes only JPEG files, and {other} is none", "Use decode=cpu")

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        import torch

        path = self.files[index]
        content = torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.uint8)
        return self.labels[index], content, path

    def decoded(self, files: Any, paths: Any, device: Any) -> Any:
        """The images [n, 3, size, size] on `device`, from a batch of the loader."""
        import torch

        try:
            from torchvision.io import ImageReadMode, decode_jpeg
        except ImportError as error:
            raise WorkloadError("this torchvision decodes no JPEG on a GPU", "Use decode=cpu") from error
        try:
            images = decode_jpeg(list(files), mode=ImageReadMode.RGB, device=device)
        except RuntimeError as error:
            raise _undecodable(f"one of {', '.join(paths)}", error) from error
        return torch.stack([self.transform(image) for image in images])


def undecoded(samples: list[Any]) -> tuple[Any, ...]:
    """A batch of JpegFiles: (classes [n], bytes of each file, path of each file)."""
    import torch

    labels, files, paths = zip(*samples, strict=True)
    return torch.tensor(labels), files, paths


def _undecodable(path: str, error: Exception) -> WorkloadError:
    return WorkloadError(f"cannot decode the image {path}: {error}", "Remove it")
