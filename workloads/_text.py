"""Text for language models: made once in the user's cache, or the user's own, always one file of bytes."""

from __future__ import annotations

import random
import shutil
from itertools import accumulate
from pathlib import Path

from workloads._common import Bar, WorkloadError
from workloads._store import check_folder, files_below, made_once

SUFFIXES = (".txt", ".md", ".rst", ".tex", ".html", ".xml", ".json", ".jsonl", ".csv", ".py", ".c", ".h",
            ".cpp", ".js", ".ts", ".java", ".go", ".rs")
SIZE = 8_000_000  # bytes of made text
VERSION = 1
_SYLLABLES = [c + v for c in (*"bdfghklmnprstvz", "br", "gl", "pr", "st", "tr") for v in "aeiou"]
_FRAMES = ("The {} {} the {}.", "A {} {}, and the {} waits.", "When the {} had {}, no {} was left.",
           "Every {} {} its {}.", '"{}," said the {}, "is but a {}."', "In {} there is {} without {}.")


def made_text() -> Path:
    """A file of `SIZE` bytes: sentences of invented words, some of them frequent, as in a language."""
    def make(folder: Path) -> None:
        rng = random.Random(VERSION)
        words = ["".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3)))) for _ in range(3000)]
        weights = list(accumulate(1 / (rank + 3) for rank in range(len(words))))  # Zipf's law
        bar, written = Bar("bytes of text", SIZE), 0
        with (folder / "text.txt").open("wb") as file:
            while written < SIZE:
                chosen = iter(rng.choices(words, cum_weights=weights, k=3 * 500))
                text = " ".join(rng.choice(_FRAMES).format(next(chosen), next(chosen), next(chosen))
                                for _ in range(500)) + "\n\n"
                written += file.write(text.encode()[:SIZE - written])
                bar.update(written)

    return made_once("text", {"kind": "text", "version": VERSION, "size": SIZE}, SIZE, make) / "text.txt"


def check_text(path: Path) -> None:
    """WorkloadError unless `path` is a readable file, or a folder with text files."""
    if not path.is_file():
        return check_folder(path, SUFFIXES)
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise WorkloadError(f"cannot read {path}: {error.strerror}", "Name one that can be read") from error
    if empty:
        raise WorkloadError(f"{path} is empty", "Name a file with text")
    return None


def one_file(path: Path) -> Path:
    """`path` itself when it is a file, else all text files below it joined in the user's cache."""
    if path.is_file():
        return path
    files = list(files_below(path, SUFFIXES))
    stats = [(str(file.resolve()), file.stat()) for file in files]
    recipe = {"kind": "texts", "files": [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]}

    def make(folder: Path) -> None:
        bar = Bar("text files", len(files))
        with (folder / "text.txt").open("wb") as joined:
            for count, file in enumerate(files, 1):
                with file.open("rb") as part:
                    shutil.copyfileobj(part, joined)
                joined.write(b"\n\n")
                bar.update(count)

    return made_once("texts", recipe, sum(stat.st_size for _, stat in stats), make) / "text.txt"
