"""Sounds for speech recognition: WAV files made once, or the user's own, each with what is said in it."""

from __future__ import annotations

import hashlib
import random
import sys
import wave
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from workloads._common import Bar, WorkloadError
from workloads._store import files_below, made_once

SUFFIXES = (".wav", ".wave")
RATE = 16_000  # Hz, of everything that is read
LETTERS = "abcdefghijklmnopqrstuvwxyz' "  # token n is LETTERS[n - 1]; 0 is the blank of CTC
LETTER_SECONDS = 0.08  # about as long as a letter takes in speech
VERSION = 1  # of the sounds: another voice is another recipe


def made_sounds(count: int, seconds: float) -> Path:
    """A folder of `count` WAV files of `seconds` / 3 to `seconds` with their texts, made on first use."""
    recipe = {"kind": "sounds", "version": VERSION, "count": count, "seconds": seconds}

    def make(folder: Path) -> None:
        bar = Bar("sounds", count)
        for index in range(count):
            rng = random.Random(1_000_003 * index + VERSION)
            length = rng.uniform(seconds / 3, seconds)
            text = sentence(rng, round(length / LETTER_SECONDS * rng.uniform(0.85, 1.15)))  # quick or slow
            write_wav(folder / f"{index:06d}.wav", voice(text, length, rng))
            (folder / f"{index:06d}.txt").write_text(text, encoding="ascii")
            bar.update(index + 1)

    return made_once("sounds", recipe, int(count * (4200 + seconds * 2 / 3 * RATE * 2)), make)


def sentence(rng: random.Random, length: int) -> str:
    """Invented words of `length` letters in all, spaces among them."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) <= length:
        words.append("".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou")
                             for _ in range(rng.choice((1, 2, 2, 3)))))
    return " ".join(words)[:length].strip() or "a"


def voice(text: str, seconds: float, rng: random.Random) -> Any:
    """Samples in [-1, 1] at RATE: each letter is a chord of its own, as a vowel is of formants."""
    import numpy as np

    pitch = rng.uniform(100, 220)  # of the speaker
    shares = list(accumulate(rng.uniform(0.8, 1.2) for _ in text))
    edges = [0, *(int(seconds * RATE * share / shares[-1]) for share in shares)]
    sound = 0.01 * np.random.default_rng(rng.randrange(2**32)).standard_normal(edges[-1])
    for letter, (first, last) in zip(text, pairwise(edges), strict=True):
        if letter == " ":
            continue
        n = LETTERS.index(letter)
        time = np.arange(last - first) / RATE
        chord = 0.3 * np.sin(2 * np.pi * pitch * time)
        for formant in (300 + 90 * (n % 6), 1000 + 220 * (n % 7), 2600 + 170 * (n % 11)):
            chord += 0.2 * np.sin(2 * np.pi * formant * time)
        sound[first:last] += chord * np.hanning(last - first)
    return np.clip(sound, -1, 1)


def write_wav(path: Path, sound: Any) -> None:
    """Samples in [-1, 1] as 16-bit mono."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((sound * 32767).astype("<i2").tobytes())


def read_wav(path: str | Path) -> Any:
    """Float tensor [n] in [-1, 1] at RATE: channels are averaged, other rates resampled linearly.

    WorkloadError for what is no WAV file of whole numbers, or has nothing in it.
    """
    import torch

    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if not 1 <= width <= 4 or not rate:
                raise wave.Error(f"{8 * width} bit at {rate} Hz")
            content = file.readframes(file.getnframes())
        sound = _samples(content[:len(content) // (channels * width) * channels * width], width)
    except (OSError, EOFError, wave.Error) as error:
        raise WorkloadError(f"cannot read the sound {path}: {str(error) or 'it ends too early'}",
                            "WAV files of 8, 16, 24 or 32 bit whole numbers (PCM) can be read") from error
    if not len(sound):
        raise WorkloadError(f"there is no sound in {path}", "Remove it")
    sound = torch.from_numpy(sound.reshape(-1, channels).mean(1))
    if rate != RATE:
        size = max(1, round(len(sound) * RATE / rate))
        sound = torch.nn.functional.interpolate(sound[None, None], size=size, mode="linear")[0, 0]
    return sound


def _samples(content: bytes, width: int) -> Any:
    """PCM of 1 to 4 bytes as float32 in [-1, 1)."""
    import numpy as np

    if width == 1:  # the only one without a sign
        return np.frombuffer(content, np.uint8).astype(np.float32) / 128 - 1
    if width == 3:
        padded = np.zeros((len(content) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        return padded.view("<i4")[:, 0].astype(np.float32) / 2**31
    return np.frombuffer(content, f"<i{width}").astype(np.float32) / 2 ** (8 * width - 1)


def seconds_of(path: Path) -> float:
    """How long a WAV file is, from its header; 0 where that cannot be read (reading it all will say why)."""
    try:
        with wave.open(str(path), "rb") as file:
            return file.getnframes() / max(1, file.getframerate())
    except (OSError, EOFError, wave.Error):
        return 0.0


def transcripts(folder: Path) -> list[tuple[Path, str]]:
    """The WAV files below `folder` and what is said in each: the text of `name.txt` beside `name.wav`.

    Where no file has one, letters are made up from the name, about as many as are
    spoken in that time. Where some have, the others are left out.
    """
    files = list(files_below(folder, SUFFIXES))
    known = [file for file in files if file.with_suffix(".txt").is_file()]
    if not known:
        print("no text is beside the sounds: letters are made up", file=sys.stderr, flush=True)
        return [(file, made_up(file.name, seconds_of(file))) for file in files]
    if left := len(files) - len(known):
        print(f"left out: {left} clips without a text", file=sys.stderr, flush=True)
    return [(file, spoken(file.with_suffix(".txt"))) for file in known]


def spoken(path: Path) -> str:
    """The letters of a transcript that the model knows."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").lower()
    except OSError as error:
        raise WorkloadError(f"cannot read the transcript {path}: {error.strerror}") from error
    return " ".join("".join(c if c in LETTERS else " " for c in text).split())


def made_up(name: str, seconds: float) -> str:
    """Letters that stand in for an unknown transcript, the same each time."""
    rng = random.Random(hashlib.sha256(name.encode(errors="surrogateescape")).digest())
    return sentence(rng, max(1, int(seconds / LETTER_SECONDS * 0.8)))
