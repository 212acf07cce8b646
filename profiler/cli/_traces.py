"""Traces for the commands that read them: from files, or out of a run; with a progress bar, and an end by Ctrl-C."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from profiler.cli._common import Progress
from profiler.errors import TraceError, UsageError
from profiler.importers import kineto
from profiler.model import Attachment
from profiler.run.reader import Run
from profiler.trace.model import Trace

_SQLITE = b"SQLite format 3\x00"
_CONTENT = (".json", ".json.gz", ".tar", ".tar.gz", ".tgz", ".gz")


def is_run(path: Path) -> bool:
    """Whether a file looks like a run, not like a trace. What is wrong with it shows when it is opened."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return path.suffix == ".stepscope"
    return head == _SQLITE or (not head and path.suffix == ".stepscope")


def files(paths: Sequence[Path]) -> list[Path]:
    """The files that were meant: a folder stands for the traces in it. UsageError for what is not there."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and p.name.endswith(_CONTENT))
            if not inside:
                raise UsageError(f"{path} is a folder without traces", "Traces end in .json, .json.gz or .tar")
            found += inside
        elif not path.exists():
            raise UsageError(f"{path}: no such file")
        else:
            found.append(path)
    return found


def read(paths: Sequence[Path], title: str = "Reading") -> list[Trace]:
    """Every process in the files. TraceError, Cancelled after Ctrl-C, or UsageError for what is not there."""
    found = files(paths)
    with Progress(title, 1.0) as bar, _interruptible() as cancelled:
        try:
            traces = kineto.load(found, progress=bar.update, cancel=cancelled)
        except TypeError:
            traces = [trace for file in found for trace in kineto.load(file)]
    return traces


def of_run(run: Run) -> list[tuple[Attachment, list[Trace]]]:
    """The traces that a run holds, by attachment. One that cannot be read is left out, unless all are.

    TraceError when there are some and none can be read.
    """
    found: list[tuple[Attachment, list[Trace]]] = []
    failed: TraceError | None = None
    for item in run.attachments():
        if item.kind != "kineto":
            continue
        with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
            file = Path(folder) / (Path(item.name).name or "trace")
            file.write_bytes(run.attachment(item.id))
            try:
                found.append((item, read([file])))
            except TraceError as error:
                failed = error
    if failed is not None and not found:
        raise failed
    return found


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks the reader to end in order; a second one ends at once."""
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not the main thread
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
