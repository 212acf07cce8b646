"""Traces for the commands that read them: from files, or out of a run; with a bar, and an end by Ctrl-C."""

from __future__ import annotations

import ctypes
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from profiler.analysis.facts import gather
from profiler.analysis.steady import cpu_with_and_without
from profiler.analysis.trace.windows import of_processes
from profiler.cli._common import Progress, plain
from profiler.cli._signals import ended_in_order, handled
from profiler.errors import RunError, TraceError, UsageError
from profiler.importers import kineto
from profiler.model import Attachment
from profiler.rules.trace import stored
from profiler.rules.trace.diagnosis import diagnose
from profiler.rules.trace.facts import TraceFacts
from profiler.run.reader import Run
from profiler.run.results import append_result
from profiler.trace.model import Trace

_SQLITE = b"SQLite format 3\x00"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_MEANT = (".pt.trace.json", ".tar", ".tgz", ".gz")  # traces by their names, also when damaged


def is_run(path: Path) -> bool:
    """Whether a file is called or looks like a run. What is wrong with it shows when it is opened."""
    if path.suffix == ".stepscope" or not path.is_file():
        return path.suffix == ".stepscope"
    try:
        with path.open("rb") as file:
            return file.read(16) == _SQLITE
    except OSError:
        return False


def files(paths: Sequence[Path]) -> list[Path]:
    """The files that were meant: a folder stands for the traces in it. UsageError for what is not there."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir()
                            if p.is_file() and (p.name.endswith(_MEANT) or kineto.sniff(p)))
            if not inside:
                raise UsageError(f"{path} is a folder without traces",
                                 "Expected are files that torch.profiler exported, plain, compressed or in a "
                                 "tar")
            found += inside
        elif not path.exists():
            raise UsageError(f"{path}: no such file")
        else:
            found.append(path)
    return found


def read(paths: Sequence[Path], title: str = "Reading") -> list[Trace]:
    """Every process in the files. TraceError, Cancelled after Ctrl-C, or UsageError for what is not there."""
    found = files(paths)
    _keep_freed_memory()
    with Progress(title, 1.0) as bar, _interruptible() as cancelled:
        return kineto.load(found, progress=bar.update, cancel=cancelled)


def _keep_freed_memory() -> None:
    """Pages of freed arrays serve the next ones, also in processes forked from here, until the command ends.

    Otherwise most arrays of a large trace begin with the kernel clearing pages, a tenth of the whole time.
    """
    with suppress(OSError, AttributeError):  # another C library than glibc
        adjust = ctypes.CDLL(None).mallopt
        adjust(_MMAP_THRESHOLD, 4 << 20)
        adjust(_TRIM_THRESHOLD, 64 << 20)


def analysed(path: Path, what_if: bool = True) -> dict[str, Any] | None:
    """What the traces inside a run say, in the form of `diagnose --json`; None when the run holds none.

    Worked out once and kept in the run, where that can be written. TraceError when none can be read.
    """
    with Run.open(path) as run:
        told = stored.stored(run)
        if told is not None and (told.get("replay") is not None) == what_if:
            return told
        found = _of_run(run)
        if not found:
            return None
        processes = [item.process for item, _ in found]
        measured = {process: _measured(run, process) for process in dict.fromkeys(processes)}
        known = {k: ns for k, process in enumerate(processes) if (ns := measured[process]) is not None}
        diagnosis = diagnose([trace for _, trace in found], str(path), what_if,
                             {k: step for k, (step, _) in known.items()}, processes, _printed(run),
                             {k: cpu for k, (_, cpu) in known.items() if cpu is not None})
        told = stored.result(diagnosis.to_json(), stored.attachments(run))
        done = run.state != "recording"
    if what_if and done:
        with suppress(RunError):  # a run that cannot be written is analysed again the next time
            append_result(path, stored.KIND, plain(told))
    return told


def one(path: Path) -> TraceFacts:
    """The trace of a file or run to compare; of several ranks the lowest. TraceError when there is none."""
    processes = None
    if is_run(path):
        with Run.open(path) as run:
            found = _of_run(run)
        if not found:
            raise TraceError(f"{path} holds no trace", "Record with --trace-steps, or import one")
        traces, processes = [trace for _, trace in found], [item.process for item, _ in found]
    else:
        traces = read([path])
    ranked = [(traces[k].rank is None, traces[k].rank or 0) for k in range(len(traces))]
    group = min(of_processes(traces, processes), key=lambda found: ranked[found[0]])
    return TraceFacts.of([traces[k] for k in group], what_if=False)


def safe_name(name: str) -> str:
    """A name for a file of ours from that of an attachment, which may be anybody's: its last part, tamed."""
    return re.sub(r"[^\w.-]", "_", name.rpartition("/")[2], flags=re.ASCII).lstrip(".")[-100:] or "trace"


def _of_run(run: Run) -> list[tuple[Attachment, Trace]]:
    """Every trace in a run. One that cannot be read is left out; TraceError when none can."""
    found: list[tuple[Attachment, Trace]] = []
    failed: TraceError | None = None
    ranks = {process.id: process.rank for process in run.processes}
    for item in run.attachments():
        if item.kind != "kineto":
            continue
        with ended_in_order(), tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
            file = Path(folder) / safe_name(item.name)
            file.write_bytes(run.attachment(item.id))
            try:
                traces = read([file])
            except TraceError as error:
                failed = error
                continue
        rank = ranks.get(item.process) if item.process is not None else None
        found += [(item, trace if rank is None else replace(trace, rank=rank)) for trace in traces]
    if failed is not None and not found:
        raise failed
    return found


def _printed(run: Run) -> str:
    """What the command printed, where its output was recorded."""
    return b"".join(data for _, _, data in run.output()).decode("utf-8", "replace")


def _measured(run: Run, process: int | None) -> tuple[int, tuple[float, float] | None] | None:
    """Steady step time of a process without the profiler; None where that was not measured.

    With it the CPU time of its loop's thread in a step, with the profiler and without. ns.
    """
    if process is None:
        return None
    facts = gather(run, process)
    if facts.summary is None or facts.lacks:
        return None
    return round(facts.summary.spread.median), cpu_with_and_without(facts.steps, facts.steady)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks the reader to end in order; a second one ends at once."""
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    with handled([signal.SIGINT], ask):
        yield lambda: asked
    if asked:
        raise KeyboardInterrupt
