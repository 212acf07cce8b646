"""The helper process: reads the traces of a run, writes their lanes to a file, then answers questions.

    python -c "..." RUN OUT

Each line on standard output is a JSON object: {"progress": 0.4}, {"model": path, ...},
{"error": text}, or {"answer": ..., "id": n} to a question {"id": n, "ask": "region", ...}
on standard input. It ends when its input does. Free of Qt.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from app.timeline import build, details, region
from app.timeline.build import Traced
from app.timeline.spans import Builder, Model, save
from profiler.analysis.trace.windows import of_processes
from profiler.errors import ProfilerError, TraceError
from profiler.importers import kineto
from profiler.model import Attachment
from profiler.run.reader import Run
from profiler.trace.merge import extent, merged
from profiler.trace.model import NONE, Trace

FAR = 3600 * 10**9  # ns from a run at which a trace is of another clock
SHOWS = 0.7  # share of the progress that is reading; the rest is working out


class Reader:
    """The traces of a run in memory, and what can be asked about them."""

    def __init__(self, path: Path, progress: Callable[[float], None]) -> None:
        notes: list[str] = []
        with Run.open(path) as run:
            start, self.range_ns = run.start_ns, (0, max(1, run.end_ns - run.start_ns))
            found = _read(run, progress, notes)
            known = [item.process for item, _ in found] if run.meta.get("kind") != "import" else None
        traces = [trace for _, trace in found]
        groups = of_processes(traces, known)
        pairs = []
        for group in groups:
            whole = merged([traces[k] for k in group])
            pairs.append((whole, _shift(whole, found[group[0]][0], start, self.range_ns[1], notes)))
        self.processes = build.processes(pairs)
        builder = Builder()
        builder.notes += notes
        for number, traced in enumerate(self.processes):
            builder.notes += traced.trace.notes
            build.add(builder, traced)
            progress(SHOWS + (1 - SHOWS) * (number + 1) / max(len(self.processes), 1))
        self.model = builder.model(self.range_ns, [traced.extent for traced in self.processes])
        self._numbers = [_numbers(self.model, traced) for traced in self.processes]

    def ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to {"ask": "region", "t0", "t1"} or {"ask": "span", "span"}; None: nothing known."""
        if question["ask"] == "region":
            return self._region(int(question["t0"]), int(question["t1"]))
        return self._span(int(question["span"]))

    def _region(self, t0: int, t1: int) -> dict[str, Any] | None:
        """Of the first process that has most of its time in the region."""
        best: tuple[int, Traced, tuple[int, int]] | None = None
        for traced in self.processes:
            inside = region.covered(traced.extent, t0, t1)
            if inside is None:
                continue
            long = inside[1] - inside[0]
            if best is None or long > best[0]:
                best = long, traced, inside
        if best is None:
            return None
        _, traced, (a, b) = best
        rank = traced.title("").removeprefix(", ")
        found = region.of_trace(traced.facts, a - traced.shift, b - traced.shift, rank)
        return region.to_json(replace(found, t0=a, t1=b))

    def _span(self, span: int) -> dict[str, Any] | None:
        model = self.model
        if not 0 <= span < len(model):
            return None
        lane = model.lane(span)
        if lane.kind == "steps":
            return None
        traced, numbers = self.processes[lane.process], self._numbers[lane.process]
        what = details.of_device if lane.kind == "stream" else details.of_host
        return asdict(what(traced, int(model.ref[span]), span, numbers))


def _read(run: Run, progress: Callable[[float], None], notes: list[str]) -> list[tuple[Attachment, Trace]]:
    items = [item for item in run.attachments() if item.kind == "kineto"]
    total = sum(item.size for item in items) or 1
    ranks = {process.id: process.rank for process in run.processes}
    found: list[tuple[Attachment, Trace]] = []
    done = 0
    for item in items:
        with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
            ending = "".join(Path(item.name).suffixes[-2:])[-20:]
            file = Path(folder) / f"trace{ending if ending.replace('.', '').isalnum() else ''}"
            file.write_bytes(run.attachment(item.id))
            before, size = done, item.size
            try:
                traces = kineto.load(
                    [file],
                    progress=lambda share, b=before, s=size: (  # type: ignore[misc]
                        progress(SHOWS * (b + share * s) / total)
                    ),
                )
            except TraceError as error:
                notes.append(f"{item.name}: {error.message}")
                traces = []
        done += size
        rank = ranks.get(item.process) if item.process is not None else None
        found += [(item, trace if rank is None else replace(trace, rank=rank)) for trace in traces]
    return found


def _shift(trace: Trace, item: Attachment, start: int, long: int, notes: list[str]) -> int:
    """What makes times of a trace those of a run from `start` on that is `long` ns.

    A trace of a recording whose clock is none, or is far from that of the run, ends when it was stored.
    """
    first, last = (t + trace.base_ns - start for t in extent(trace))
    if item.process is None or (trace.absolute and first < long + FAR and last > -FAR):
        return trace.base_ns - start
    notes.append(f"{item.name} does not share the run's clock: it is drawn to end when it was stored.")
    return item.t_ns - start - extent(trace)[1]


def _numbers(model: Model, traced: Traced) -> details.Numbers:
    tables = {
        "host": np.full(len(traced.trace.host), NONE, np.int32),
        "device": np.full(len(traced.trace.device), NONE, np.int32),
    }
    for lane in model.lanes:
        if lane.process != traced.number or lane.kind == "steps":
            continue
        a, b = int(model.edges[lane.first]), int(model.edges[lane.first + lane.rows])
        tables["device" if lane.kind == "stream" else "host"][model.ref[a:b]] = np.arange(a, b)
    return details.Numbers(tables["host"], tables["device"])


def _tell(**told: Any) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def main(run: str, out: str) -> int:
    """Read, tell where the lanes are, answer until the input ends."""
    told = [0.0]

    def progress(share: float) -> None:
        if share - told[0] >= 0.01:
            told[0] = share
            _tell(progress=share)

    try:
        reader = Reader(Path(run), progress)
        save(reader.model, Path(out))
    except (ProfilerError, OSError, MemoryError) as error:
        _tell(error=str(error) or type(error).__name__)
        return 2
    _tell(model=out)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            _tell(id=question["id"], answer=reader.ask(question))
        except Exception as error:  # told where it was asked; one question never ends the others
            _tell(id=question["id"], error=f"{type(error).__name__}: {error}")
    return 0
