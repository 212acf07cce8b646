"""Data that workloads make once and keep in the user's cache directory."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workloads._common import WorkloadError

STALE_SECONDS = 600  # an unfinished folder that nobody wrote to for so long belongs to nobody
RECIPE = "recipe.json"  # written last
_UNFINISHED = re.compile(r"\.\w+-[0-9a-f]{12}\.\w{8}")  # the folder that `_make` fills


def cache_dir() -> Path:
    """The folder given by STEPSCOPE_CACHE; who starts a workload sets it."""
    if path := os.environ.get("STEPSCOPE_CACHE"):
        return Path(path)
    return Path(tempfile.gettempdir()) / "stepscope"


def made_once(kind: str, recipe: Mapping[str, Any], size: int, make: Callable[[Path], None]) -> Path:
    """The folder made by `make(folder)` from `recipe`; made now when it is not there yet.

    `size` is about how many bytes it takes. The folder appears under its name
    only when it is whole: an interruption leaves nothing half behind, and two
    processes that make the same do not disturb each other.
    """
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
    final = cache_dir() / f"{kind}-{digest}"
    if _whole(final):
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(final.parent)
        free = shutil.disk_usage(final.parent).free
        if free < size:
            raise WorkloadError(f"{final.parent} has {free / 1e6:.1f} MB free of {size / 1e6:.1f} MB needed",
                                "Free some, or set STEPSCOPE_CACHE to another folder")
        print(f"making {kind} once, about {size / 1e6:.1f} MB, in {final}", file=sys.stderr, flush=True)
        _make(final, recipe, make)
    except OSError as error:
        raise WorkloadError(f"cannot write the {kind} to {final.parent}: {error.strerror or error}",
                            "Set STEPSCOPE_CACHE to a folder that can be written") from error
    return final


def _whole(folder: Path) -> bool:
    return (folder / RECIPE).is_file()


def _make(final: Path, recipe: Mapping[str, Any], make: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    try:
        make(unfinished)
        (unfinished / RECIPE).write_text(json.dumps(dict(recipe), indent=1), encoding="utf-8")
        unfinished.chmod(0o755)
        if not _whole(final):
            shutil.rmtree(final, ignore_errors=True)  # somebody has cleaned up in it
        try:
            unfinished.rename(final)
        except OSError:
            if not _whole(final):  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _remove_stale(folder: Path) -> None:
    """Remove what killed processes left unfinished in the cache, whatever they were making."""
    for left in folder.glob(".*"):
        if _UNFINISHED.fullmatch(left.name) and not _written_lately(left):
            shutil.rmtree(left, ignore_errors=True)


def _written_lately(folder: Path) -> bool:
    """Whether something in `folder`, however deep, was written within STALE_SECONDS."""
    since = time.time() - STALE_SECONDS
    for path in (folder, *folder.rglob("*")):
        try:
            if path.stat().st_mtime > since:
                return True
        except FileNotFoundError:  # its maker has just finished and renamed it
            return True
    return False


def files_below(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Files in `path` and its folders that end in one of `suffixes` (lower case), in a stable order."""
    for folder, names, files in os.walk(path):
        names.sort()
        for name in sorted(files):
            if name.lower().endswith(suffixes) and not name.startswith("."):
                yield Path(folder) / name


def check_folder(path: Path, suffixes: tuple[str, ...]) -> None:
    """WorkloadError unless `path` is a readable folder with at least one file of these endings below it."""
    try:
        next(os.scandir(path), None)
    except OSError as error:
        raise WorkloadError(f"cannot read the data folder {path}: {error.strerror}",
                            "Name a folder that exists and can be read") from error
    if next(files_below(path, suffixes), None) is None:
        raise WorkloadError(f"there are no files in {path} that end in {', '.join(suffixes)}",
                            "Name a folder that holds some")
