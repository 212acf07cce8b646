"""A Conformer in small for CTC: convolutions that shorten, then attention and convolution in each block."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

MELS = 80
WINDOW, HOP = 400, 160  # samples at 16 kHz: 25 ms every 10 ms
SHORTEST = WINDOW + 6 * HOP  # samples that make one frame of the model


class Size(NamedTuple):
    """Blocks, width of the residual stream, attention heads."""

    blocks: int
    width: int
    heads: int


class LogMel(nn.Module):
    """Sound [n, samples] at 16 kHz to a log-mel spectrogram [n, frames, 80]."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("bank", mel_bank(), persistent=False)

    def forward(self, sound: Any) -> Any:
        with torch.autocast(sound.device.type, enabled=False):  # powers span more than half precision holds
            spectrum = torch.stft(sound, WINDOW, HOP, window=self.window, center=False, return_complex=True)
            return ((spectrum.abs() ** 2).transpose(1, 2) @ self.bank + 1e-6).log()


def frames_of(samples: int) -> int:
    """Frames of the spectrogram of so many samples."""
    return (samples - WINDOW) // HOP + 1


def shortened(frames: Any) -> Any:
    """Frames that the model gives for so many of the spectrogram (int or tensor of them)."""
    return ((frames - 1) // 2 - 1) // 2


def mel_bank() -> Any:
    """Triangles even on the mel scale from 0 to 8 kHz: [201 frequencies, 80]."""
    bins = WINDOW // 2 + 1
    mels = torch.linspace(0, 2595 * math.log10(1 + 8000 / 700), MELS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    frequency = torch.linspace(0, 8000, bins)[:, None]
    rising = (frequency - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequency) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0)


class FeedForward(nn.Sequential):
    """Half a feed-forward network of the macaron: [n, t, width] to the same."""

    def __init__(self, width: int) -> None:
        super().__init__(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))


class Convolution(nn.Module):
    """Gated pointwise, depthwise along the time, pointwise: what is near."""

    def __init__(self, width: int, kernel: int = 15) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, 2 * width)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.inner_norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, sounding: Any) -> Any:
        x = nn.functional.glu(self.gate(self.norm(x)), dim=-1) * sounding[..., None]
        x = self.depthwise(x.transpose(1, 2)).transpose(1, 2)
        return self.out(nn.functional.silu(self.inner_norm(x)))


class Block(nn.Module):
    """Half feed-forward, attention, convolution, half feed-forward, each added to its input."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.first, self.second = FeedForward(size.width), FeedForward(size.width)
        self.attention_norm = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.projection = nn.Linear(size.width, size.width)
        self.convolution = Convolution(size.width)
        self.norm = nn.LayerNorm(size.width)

    def forward(self, x: Any, sounding: Any) -> Any:
        """`sounding` [n, t]: true where there is sound and not padding."""
        x = x + 0.5 * self.first(x)
        n, t, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(n, t, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(q, k, v, attn_mask=sounding[:, None, None, :])
        x = x + self.projection(attended.transpose(1, 2).reshape(n, t, width))
        x = x + self.convolution(x, sounding)
        return self.norm(x + 0.5 * self.second(x))


class Conformer(nn.Module):
    """Spectrograms [n, frames, 80], and frames of each, to logits [n, shortened frames, tokens].

    One that `hears` takes sound [n, samples] in place of spectrograms.
    """

    def __init__(self, size: Size, tokens: int, hears: bool = False) -> None:
        super().__init__()
        self.hear = LogMel() if hears else nn.Identity()
        self.shorten = nn.Sequential(
            nn.Conv2d(1, size.width, 3, stride=2), nn.ReLU(),
            nn.Conv2d(size.width, size.width, 3, stride=2), nn.ReLU())
        self.into = nn.Linear(size.width * shortened(MELS), size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.blocks))
        self.head = nn.Linear(size.width, tokens)

    def forward(self, heard: Any, frames: Any) -> Any:
        x = self.shorten((self.hear(heard)[:, None] + 4) / 4)  # of about zero mean and unit variance
        x = self.into(x.transpose(1, 2).flatten(2))
        positions = torch.arange(x.shape[1], device=x.device)
        sounding = positions < shortened(frames)[:, None]
        x = x + sinusoids(positions, x.shape[2]).to(x.dtype)
        for block in self.blocks:
            x = block(x, sounding)
        return self.head(x)


def sinusoids(positions: Any, width: int) -> Any:
    """The absolute position code of the Transformer: [t, width]."""
    rates = torch.exp(torch.arange(0, width, 2, device=positions.device) * (-math.log(10_000) / width))
    angles = positions[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)
