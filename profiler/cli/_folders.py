"""Folders of experiments that many runs belong to: a new one, a named one, or the one to go on with."""

from __future__ import annotations

import time
from pathlib import Path

from profiler.errors import UsageError
from profiler.paths import runs_dir


def experiment_folder(kind: str, marker: str, output: Path | None, resume: bool) -> Path:
    """`output`; else a new one beside the other runs, or with `resume` the newest that holds `marker`.

    UsageError when there is none to go on with. Nothing is made here.
    """
    if output is not None:
        return output.absolute()
    if not resume:
        return (runs_dir() / f"{kind}-{time.strftime('%Y-%m-%d_%H-%M-%S')}").absolute()
    older = [path.parent for path in runs_dir().glob(f"{kind}-*/{marker}")]
    if not older:
        raise UsageError(f"there is no {kind} in {runs_dir()} to resume", "Name its folder with -o")
    return max(older, key=lambda path: path.name).absolute()
