"""Made pictures: JPEG files with the structure of real ones, ten classes, the same bytes in every making."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from workloads._common import Bar
from workloads._store import made_once

CLASSES = 10
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
VERSION = 1  # of the pictures: another look is another recipe


def made_pictures(count: int, height: int, width: int) -> Path:
    """A folder of `count` JPEG files in one folder per class, made on first use."""
    recipe = {"kind": "pictures", "version": VERSION, "count": count, "height": height, "width": width}

    def make(folder: Path) -> None:
        import torch

        bar = Bar("pictures", count)
        for label in range(CLASSES):
            (folder / f"class_{label}").mkdir()
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # small operators: more threads only wait for each other
        for index in range(count):
            label = index % CLASSES
            path = folder / f"class_{label}" / f"{index:06d}.jpg"
            picture(index, label, height, width).save(path, quality=88)
            bar.update(index + 1)
        torch.set_num_threads(threads)

    return made_once("pictures", recipe, int(count * (2000 + 0.22 * height * width)), make)


def picture(index: int, label: int, height: int, width: int) -> Any:
    """One PIL image: a smooth ground, a woven pattern whose hue tells the class, discs, and fine grain."""
    import torch
    from PIL import Image
    from torch.nn.functional import interpolate

    rng = torch.Generator().manual_seed(1_000_003 * index + label)
    ground = torch.rand(1, 3, 5, 7, generator=rng)
    image = interpolate(ground, size=(height, width), mode="bilinear", align_corners=True)[0] * 0.6 + 0.2
    y = torch.linspace(0, 1, height)[:, None]
    x = torch.linspace(0, width / height, width)[None, :]
    frequency, phase = 8 + 24 * torch.rand(2, generator=rng), 6.3 * torch.rand(2, generator=rng)
    weave = torch.sin(frequency[0] * x + phase[0]) * torch.sin(frequency[1] * y + phase[1])
    hue = torch.tensor([math.cos(2 * math.pi * (label / CLASSES + shift / 3)) for shift in range(3)])
    image += 0.25 * hue[:, None, None] * (1 + weave)
    for cx, cy, radius, shade in torch.rand(6, 4, generator=rng).tolist():
        disc = (x - cx * width / height) ** 2 + (y - cy) ** 2 < (0.03 + 0.1 * radius) ** 2
        image += disc * (shade - 0.5) * 0.5
    image += 0.03 * torch.randn(3, height, width, generator=rng)
    pixels = (image.clamp(0, 1) * 255).to(torch.uint8).permute(1, 2, 0).contiguous()
    return Image.frombytes("RGB", (width, height), pixels.numpy().tobytes())
