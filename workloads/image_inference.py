"""Answers to images, offline or online.

Inference without training, with weights as they begin: the answers mean
nothing, the work is the same. Offline, JPEG files go through the network batch
by batch, as fast as they can. Online, requests come at random times (Poisson),
wait until a batch is full or the first of them has waited long enough, and are
answered: the run ends with the latency, p50, p95 and p99, from when a request
came to its answer. Files are made once, or they are the user's own (--data).

A step is one batch. Offline on a GPU decoding is the bottleneck (input_bound)
until there are enough workers; on a CPU a large network is compute_bound, and a
small one input_bound too. Online, requests come through a loader as well: a
server that keeps up waits for them (input_bound), and no remedy in it raises
their rate; one that does not keep up refuses some, and says how many.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads import _settings
from workloads._common import Progress, keep
from workloads._device import autocast, start
from workloads._faults import Faults
from workloads._images import check_network, network, opened
from workloads._loader import Batches, make_loader
from workloads._pictures import SUFFIXES, made_pictures
from workloads._serving import Request, Requests, figures, told
from workloads._settings import CommonSettings, check_common, setting, with_faults
from workloads._store import check_folder, files_below
from workloads._training import State, forward_of

TITLE = "Image inference"
GROUP = "Vision"
ICON = "eye"
UNIT = "samples"
DATA = "a folder of images"
SIZES: dict[str, dict[str, Any]] = {
    "smallest": {"model": "resnet18", "batch_size": 8, "image_size": 64, "images": 128, "steps": 30},
    "typical": {},
    "stress": {"model": "vit_b_16", "batch_size": 256, "images": 4096, "rate": 2000.0, "steps": 1000},
}
HEALTHY: dict[str, Any] = {"threads": 1, "workers": 1, "persistent_workers": True, "batch_size": 4,
                           "image_size": 96, "model": "resnet50"}
OFFLINE = "needs mode=offline"
WAITING = 4  # batches of requests that may wait; more are refused


@with_faults
@dataclass(frozen=True)
class Settings(CommonSettings):
    """Settings of the inference: the common ones, the network, and how requests come."""

    mode: str = setting(
        "offline", "Mode", "offline: all files in batches, online: requests that come one by one",
        group="Model and data", choices=("offline", "online"), order=-1)
    model: str = setting(
        "resnet50", "Model", "the torchvision network", group="Model and data",
        choices=("resnet18", "resnet50", "vit_b_16", "mobilenet_v3_large"))
    images: int = setting(
        1024, "Images made", "JPEG files of 400 x 320 pixels, made once; not used with --data",
        group="Model and data", unit="files", minimum=10, maximum=100_000)
    image_size: int = setting(
        224, "Image size", "side of the square that the network sees", group="Model and data", unit="px",
        minimum=32, maximum=1024)
    rate: float = setting(
        100.0, "Arrivals", "online, requests that come in a second on average", group="Model and data",
        unit="requests/s", minimum=0.1, maximum=1_000_000.0)
    max_wait_ms: float = setting(
        5.0, "Longest wait", "online, a batch that is not full starts when its first request waited so long",
        group="Model and data", unit="ms", minimum=0.0, maximum=10_000.0, order=2)
    batch_size: int = setting(
        32, "Batch size", "images in one batch; online the most in one", group="Model and data",
        unit="samples", minimum=1, maximum=65536, order=1)
    workers: int = setting(
        0, "Workers", "loader processes, or online threads that decode; 0 decodes in the loop's own thread",
        group="Loader", minimum=0, maximum=256)
    channels_last: bool = setting(
        False, "Channels last", "keep images and weights in the memory layout that tensor cores like",
        group="Compute")


class Pictures:
    """Image files as the network sees them: one float image [3, size, size], in a tuple of its own."""

    def __init__(self, folder: Path, size: int) -> None:
        import torch
        from torchvision.transforms import v2

        self.files = [str(path) for path in files_below(folder, SUFFIXES)]
        self.transform = v2.Compose([
            v2.Resize(size * 256 // 224, antialias=True),
            v2.CenterCrop(size),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any]:
        return (self.transform(opened(self.files[index])),)


def check(settings: Settings) -> dict[str, str]:
    """Settings that exclude each other, with the reason."""
    varied = getattr(settings, "variable_shapes", 0) > 0
    problems = check_common(settings) | check_network(settings.model, settings.image_size, varied)
    if settings.mode == "online":
        if getattr(settings, "few_workers", 0):
            problems["few_workers"] = OFFLINE
        if settings.prefetch_to_device:
            problems["prefetch_to_device"] = "online a batch would have to wait for the next one"
        if settings.cuda_graphs and not settings.static_shapes:
            problems["cuda_graphs"] = "needs static_shapes: online batches differ in size"
    return problems


def not_applicable(settings: Settings) -> dict[str, str]:
    """Settings without a meaning beside the others: name -> reason."""
    off = _settings.not_applicable(settings)
    if settings.mode == "online":
        return off | dict.fromkeys(("prefetch_factor", "persistent_workers", "few_workers"), OFFLINE)
    return off | dict.fromkeys(("rate", "max_wait_ms"), "needs mode=online")


def check_data(path: Path) -> None:
    """WorkloadError unless `path` is a readable folder with images."""
    check_folder(path, SUFFIXES)


def run(settings: Settings, data: Path | None = None) -> None:
    """Answer until `settings.steps` batches are done, on the images in `data` or on made ones."""
    import torch

    device = start(settings, suits_cpu=settings.model in ("resnet18", "mobilenet_v3_large"))
    layout = torch.channels_last if settings.channels_last else torch.contiguous_format
    dataset = Pictures(data or made_pictures(settings.images, 320, 400), settings.image_size)
    model = network(settings.model, settings.image_size).eval().requires_grad_(False)
    state = State(settings, device, model.to(device, memory_format=layout))
    with torch.inference_mode(), state.kept:
        (online if settings.mode == "online" else offline)(state, dataset, Faults(settings))


def offline(state: State, dataset: Any, faults: Faults) -> None:
    """All images in batches. Answers stay on the device until the end: nothing waits for them."""
    import torch

    settings = state.settings
    forward = forward_of(faults.model(state.model), settings)
    batches = Batches(make_loader(dataset, settings, faults), settings, state.device, faults)
    progress = Progress(settings.steps, settings.batch_size, UNIT, tells="confidence")
    answers = []
    while True:
        for (images,) in batches:
            with autocast(settings, state.device):
                confidence, answer = forward(images).softmax(1).max(1)
            answers.append(answer)
            faults.after_step(state, progress.step)
            if progress.update(confidence.mean()):
                print(f"{len(torch.cat(answers).cpu())} images have their answer", flush=True)
                return


def online(state: State, dataset: Any, faults: Faults) -> None:
    """Answer requests as they come, in batches, and tell their latency."""
    import torch

    settings: Any = state.settings
    dataset = faults.dataset(dataset)
    forward = forward_of(faults.model(state.model), settings)
    largest = torch.stack([dataset[0][0]] * settings.batch_size).to(state.device)
    with autocast(settings, state.device):
        forward(largest).argmax(1).cpu()  # a server is warm before it takes requests
    latencies: list[float] = []
    progress = Progress(settings.steps, 0, UNIT, tells="latency_ms")
    room = WAITING * settings.batch_size
    with Requests(dataset, settings.rate, settings.seed, settings.workers, room) as requests:
        try:
            arrived = arriving(requests, settings, faults)
            for images, *batch in Batches(arrived, settings, state.device, faults):
                with autocast(settings, state.device):
                    forward(images).argmax(1).cpu()  # the answers go out
                now = time.monotonic()
                took = [now - request.at for request in batch]
                latencies += took
                faults.after_step(state, progress.step)
                if progress.update(1000 * sum(took) / len(took), len(took)):
                    break
        finally:  # also of a run that is stopped
            if latencies:
                keep("latency", told(latencies), figures(latencies))
    refused = f", {requests.refused} refused: they come faster than they are answered"
    print(f"{len(latencies) / progress.step:.1f} requests in a batch{refused if requests.refused else ''}",
          flush=True)


class Inputs:
    """What a loader reads for a request: (the image, the request)."""

    def __getitem__(self, request: Request) -> tuple[Any, Request]:
        return request.read()[0], request


def joined(answers: list[tuple[Any, Request]]) -> tuple[Any, ...]:
    """A batch: the images [n, 3, size, size], then each request."""
    import torch

    images, requests = zip(*answers, strict=True)
    return torch.stack(images), *requests


def arriving(requests: Requests, settings: Any, faults: Faults) -> Iterator[tuple[Any, ...]]:
    """Batches of requests as they come, through a DataLoader: waiting and decoding are its data wait.

    With static_shapes the images are filled up to a whole batch.
    """
    import torch
    from torch.utils.data import DataLoader

    batches = requests.batches(settings.batch_size, settings.max_wait_ms / 1000)
    options = {"batch_sampler": batches, "collate_fn": joined, "pin_memory": settings.pin_memory}
    for images, *batch in DataLoader(Inputs(), **faults.loader(options)):
        if settings.static_shapes:
            empty = images.new_zeros(settings.batch_size - len(batch), *images.shape[1:])
            images = torch.cat([images, empty])
        yield images, *batch
