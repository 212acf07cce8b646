"""The newest runs of the user's folder, in the few words of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import ProfilerError
from profiler.paths import runs_dir

if TYPE_CHECKING:
    from profiler.run.reader import Run

if TYPE_CHECKING:
    from profiler.run.reader import Run

SHOWN = 6
CUT_SHORT = ("stopped", "detached")


@dataclass(frozen=True)
class Recent:
    """A run in a list. `step_ms` is None where it has no steady steps, or no steps."""

    path: Path
    name: str
    when: datetime
    size: int  # bytes
    workload: str = ""
    capture: str = ""
    seconds: float = 0.0
    step_ms: float | None = None
    recording: bool = False
    whole: bool = True  # ran to its own end: the next one takes about as long


def newest(folder: Path | None = None, also: Iterable[str] = (), count: int = SHOWN) -> list[Path]:
    """The newest run files of the folder, and of `also`, newest first."""
    folder = folder or runs_dir()
    files = {path.resolve() for path in folder.glob("*.stepscope")} if folder.is_dir() else set()
    files |= {path.resolve() for path in map(Path, also) if path.is_file()}
    dated = []
    for path in files:
        try:
            dated.append((path.stat().st_mtime, path))
        except OSError:  # deleted in between
            continue
    return [path for _, path in sorted(dated, reverse=True)[:count]]


def read(paths: Iterable[Path]) -> list[Recent]:
    """Look into each file; one that is no run is left out. Slow: for the worker thread."""
    found = [read_one(path) for path in paths]
    return [recent for recent in found if recent is not None]


def read_one(path: Path) -> Recent | None:
    from profiler.run.reader import Run

    try:
        stat = path.stat()
        run = Run.open(path)
    except (ProfilerError, OSError):
        return None
    try:
        meta = run.meta
        workload = meta.get("workload") or {}
        return Recent(
            path,
            str(meta.get("name") or path.stem),
            datetime.fromtimestamp(run.start_ns / 1e9),
            stat.st_size,
            str(workload.get("name") or ""),
            _capture(run),
            max(0.0, (run.end_ns - run.start_ns) / 1e9),
            _step_ms(run),
            run.state == "recording",
            run.state == "finished" and (meta.get("exit") or {}).get("reason") not in CUT_SHORT,
        )
    except (ProfilerError, OSError, ValueError, KeyError):
        return None
    finally:
        run.close()


def _capture(run: Run) -> str:
    """The level that it was recorded at, by the traces it holds."""
    traces = sum(attachment.kind == "kineto" for attachment in run.attachments())
    return "light" if not traces else "trace" if traces == 1 else "traces"


def _step_ms(run: Run) -> float | None:
    """The median of the steady steps; None where there are too few to say."""
    from profiler.analysis.steady import FEWEST, steady
    from profiler.analysis.steps import from_when, load_steps, training_process
    from profiler.analysis.summary import spread

    process = training_process(run)
    steps = load_steps(run, process, from_when(run, process, None, None)[0])
    wall = steps.wall[steady(steps).mask]
    return spread(wall).median / 1e6 if len(wall) >= FEWEST else None


def when(moment: datetime, now: datetime) -> str:
    """today 14:06, yesterday, 12 March."""
    days = (now.date() - moment.date()).days
    if days == 0:
        return f"today {moment:%H:%M}"
    if days == 1:
        return "yesterday"
    return f"{moment.day} {moment:%B}" if moment.year == now.year else f"{moment:%Y-%m-%d}"
