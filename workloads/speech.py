"""Conformer with CTC on WAV files.

Speech recognition in small: a Conformer (attention and convolution) hears
log-mel spectrograms and learns the letters that are said, by connectionist
temporal classification and AdamW. The WAV files are made once, a chord for each
letter, or the user's own (--data). What is said in `name.wav` is the text in
`name.txt` beside it; without any, letters are made up.

Clips differ in length, so batches differ in shape: each is filled up to its
longest clip, or with static_shapes to the longest of all.

Spectrograms in the loader are work for the CPU: a fast GPU then waits for them
with few workers (input_bound). On the device they are a few kernels, and the
run is compute_bound, launch_bound with a small model. On a CPU it is
compute_bound either way.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workloads._common import WorkloadError
from workloads._device import start
from workloads._settings import TrainingSettings, check_common, setting, with_faults
from workloads._sounds import LETTERS, RATE, SUFFIXES, made_sounds, read_wav, seconds_of, transcripts
from workloads._store import check_folder
from workloads._training import checkpoint_activations, optimizer_options, train

TITLE = "Speech recognition"
GROUP = "Speech"
ICON = "wave"
UNIT = "samples"
DATA = "a folder of WAV files, each with its text in a .txt file of the same name beside it, or without any"
SIZES: dict[str, dict[str, Any]] = {
    "smallest": {"model": "tiny", "batch_size": 8, "clips": 64, "seconds": 1.5, "steps": 40},
    "typical": {},
    "stress": {"model": "large", "batch_size": 64, "clips": 4096, "seconds": 10.0, "precision": "bfloat16",
               "steps": 1000},
}
HEALTHY: dict[str, Any] = {"threads": 1, "workers": 1, "persistent_workers": True, "model": "small",
                           "batch_size": 2}
MODELS = {  # blocks, width, heads; in brackets the parameters
    "tiny": (2, 64, 4),  # 0.3 M
    "small": (12, 144, 4),  # 6 M
    "medium": (16, 256, 4),  # 26 M
    "large": (17, 512, 8),  # 110 M
}


@with_faults
@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the speech recognition: the common ones, the model, the clips and their spectrograms."""

    model: str = setting(
        "small", "Model", "tiny 0.3 M, small 6 M, medium 26 M, large 110 M parameters",
        group="Model and data", choices=tuple(MODELS))
    clips: int = setting(
        512, "Clips made", "WAV files, made once; not used with --data", group="Model and data", unit="files",
        minimum=8, maximum=100_000)
    seconds: float = setting(
        5.0, "Longest clip", "made clips last a third of it to all of it; longer ones of --data are left out",
        group="Model and data", unit="s", minimum=0.5, maximum=60.0)
    batch_size: int = setting(
        16, "Batch size", "clips in one step", group="Model and data", unit="samples", minimum=1,
        maximum=65536, order=1)
    spectrograms: str = setting(
        "loader", "Spectrograms", "where sound becomes a log-mel spectrogram: in the loader on the CPU, or "
        "in the model on its device", group="Loader", choices=("loader", "device"), order=-1)


class Clips:
    """WAV files with what is said in them: (sound [n] or its spectrogram [frames, 80], letters [m])."""

    def __init__(self, folder: Path, seconds: float, spectrograms: bool) -> None:
        from workloads._conformer import LogMel

        found = [(file, text, seconds_of(file)) for file, text in transcripts(folder)]
        self.clips = [clip for clip in found if clip[2] <= seconds]
        if left := len(found) - len(self.clips):
            print(f"left out: {left} clips longer than {seconds:g} s", file=sys.stderr, flush=True)
        if not self.clips:
            raise WorkloadError(f"all clips in {folder} are longer than {seconds:g} s", "Set more seconds")
        self.spectrogram = LogMel() if spectrograms else None

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        import torch

        from workloads._conformer import SHORTEST

        file, text, _ = self.clips[index]
        sound = read_wav(file)
        sound = torch.nn.functional.pad(sound, (0, max(0, SHORTEST - len(sound))))
        letters = torch.tensor([LETTERS.index(letter) + 1 for letter in text], dtype=torch.int64)
        return (self.spectrogram(sound[None])[0] if self.spectrogram else sound), letters

    def largest(self) -> dict[str, Any]:
        """The arguments of `joined` that fill every batch up to one shape."""
        from workloads._conformer import SHORTEST, frames_of

        samples = max(SHORTEST, *(round(seconds * RATE) for _, _, seconds in self.clips))
        return {"longest": frames_of(samples) if self.spectrogram else samples,
                "most": max(len(text) for _, text, _ in self.clips)}


def joined(clips: list[tuple[Any, Any]], longest: int = 0, most: int = 0) -> tuple[Any, ...]:
    """A batch: what is heard [n, longest, ...], its frames [n], letters [n, most], both lengths as numbers.

    Filled up with zeros to the longest, or to `longest` and `most`. The numbers
    are for CTC, which needs them on the host: there is nothing to wait for.
    """
    import torch

    from workloads._conformer import frames_of

    heard, letters = zip(*clips, strict=True)
    frames = tuple(len(x) if x.dim() == 2 else frames_of(len(x)) for x in heard)
    return (_filled(heard, longest), torch.tensor(frames), _filled(letters, most),
            frames, tuple(map(len, letters)))


def _filled(parts: tuple[Any, ...], least: int) -> Any:
    """Tensors [length, ...] in one [n, length, ...], with zeros after those that are shorter."""
    batch = parts[0].new_zeros(len(parts), max(least, *map(len, parts)), *parts[0].shape[1:])
    for row, part in zip(batch, parts, strict=True):
        row[:len(part)] = part
    return batch


def check(settings: Settings) -> dict[str, str]:
    """Settings that exclude each other, with the reason."""
    problems = check_common(settings)
    if settings.cuda_graphs and not settings.static_shapes:
        problems["cuda_graphs"] = "needs static_shapes: clips differ in length"
    return problems


def check_data(path: Path) -> None:
    """WorkloadError unless `path` is a readable folder with WAV files."""
    check_folder(path, SUFFIXES)


def run(settings: Settings, data: Path | None = None) -> None:
    """Train until `settings.steps`, on the sounds in `data` or on made ones."""
    import torch
    from torch.nn.functional import ctc_loss

    from workloads._conformer import Conformer, Size, shortened

    device = start(settings, suits_cpu=settings.model == "tiny")
    on_device = settings.spectrograms == "device"
    dataset = Clips(data or made_sounds(settings.clips, settings.seconds), settings.seconds, not on_device)
    model = Conformer(Size(*MODELS[settings.model]), len(LETTERS) + 1, hears=on_device).to(device)
    if settings.activation_checkpointing:
        checkpoint_activations(model.blocks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3 if settings.model == "tiny" else 3e-4,
                                  **optimizer_options(settings))

    def loss_of(forward: Any, heard: Any, frames: Any, letters: Any, lengths: Any, counts: Any) -> Any:
        chances = forward(heard, frames).float().log_softmax(2).transpose(0, 1)
        return ctc_loss(chances, letters, [shortened(n) for n in lengths], counts, zero_infinity=True)

    collate = partial(joined, **dataset.largest()) if settings.static_shapes else joined
    train(settings, device, dataset, model, optimizer, loss_of, unit=UNIT, collate_fn=collate)
