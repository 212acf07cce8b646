"""A run file from traces: their processes, devices and steps, the originals, and what was found out.

What the views and the report know from recordings is put in as tracks: step times, the
data wait, and memory. Nothing else is, since a trace does not tell it.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.device.occupancy import properties as told_of
from profiler.analysis.trace.memory.memory import CPU
from profiler.cli._signals import ended_in_order
from profiler.errors import RunError
from profiler.rules.trace import stored
from profiler.rules.trace.diagnosis import TraceDiagnosis
from profiler.rules.trace.facts import TraceFacts
from profiler.rules.trace.input_bound import fetches
from profiler.rules.trace.numbers import pid
from profiler.run.files import must_be_free, place
from profiler.run.results import append_result
from profiler.run.writer import KEPT, RunWriter
from profiler.trace.merge import span
from profiler.trace.model import Trace
from profiler.version import version

_MOST = 200_000  # memory samples of a device; of more, evenly chosen ones


def write(path: Path, originals: Sequence[Path], found: TraceDiagnosis, told: Mapping[str, Any],
          name: str = "", overwrite: bool = False) -> None:
    """Make the run file of a diagnosis and its JSON form. It appears under its name when it is complete.

    RunError when it cannot be written; then, and after an interrupt or a signal, nothing is left behind.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.import")
    with ended_in_order():
        try:
            must_be_free(path, overwrite)
            _fill(new, originals, found, told, name)
            place(new, path, overwrite)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}", "Name another file with -o") from error
        except RunError as error:  # in the user's words, not ours
            raise type(error)(error.message.replace(str(new), str(path)), error.hint) from error
        finally:
            for ending in ("", "-wal", "-shm", "-journal"):
                new.with_name(new.name + ending).unlink(missing_ok=True)


def _fill(new: Path, originals: Sequence[Path], found: TraceDiagnosis, told: Mapping[str, Any],
          name: str) -> None:
    times = [span(facts.trace) for facts in found.every]
    start, end = min(first for first, _ in times), max(last for _, last in times)
    writer = RunWriter.create(new, _meta(found, originals, name, start))
    try:
        for facts in found.every:
            _process(writer, facts, several=len(found.every) > 1)
        for original in originals:
            data, size = _compressed(original)
            writer.attach(start, "kineto", original.name, data, properties={"size": size})
        writer.finish("finished", end)
    finally:
        writer.close()
    if writer.failed:
        raise RunError(writer.failed.removesuffix(f". {KEPT}"), "Make room, or name another file with -o")
    append_result(new, stored.KIND, stored.result(told, [*range(1, len(originals) + 1)]))


def _compressed(original: Path) -> tuple[bytes, int]:
    """A file's content, compressed as it is read unless it is already; and its size."""
    with original.open("rb") as file:
        first = file.read(2)
        if first == b"\x1f\x8b":
            data = first + file.read()
            return data, len(data)
        pack = zlib.compressobj(3, wbits=31)
        parts, size = [pack.compress(first)], len(first)
        while block := file.read(1 << 20):
            parts.append(pack.compress(block))
            size += len(block)
        return b"".join([*parts, pack.flush()]), size


def _meta(found: TraceDiagnosis, originals: Sequence[Path], name: str, start: int) -> dict[str, Any]:
    first = originals[0].name
    for ending in (".gz", ".json", ".tar", ".trace", ".pt"):
        first = first.removesuffix(ending)
    absolute = all(facts.trace.absolute for facts in found.every)
    return {"name": name or first, "notes": "", "kind": "import", "command": [], "cwd": str(Path.cwd()),
            "workload": None, "environment": {}, "git": None, "start_ns": start,
            "imported_ns": time.time_ns(),
            "sources": [str(path) for path in originals], "absolute_times": absolute,
            "versions": {"stepscope": version()}, "machine": {}, "overhead": {}, "exit": None,
            "gpu": {"state": "absent", "reason": "the run was made from traces", "hint": ""}}


def _process(writer: RunWriter, facts: TraceFacts, several: bool) -> None:
    trace = facts.trace
    devices = _devices(writer, trace, several)
    properties: dict[str, Any] = {"source": trace.source, "rank": trace.rank, "world_size": trace.world_size,
                                  "torch": {"device_count": len(devices)}}
    process = writer.add_process(pid(facts) or 0, "rank" if trace.rank is not None else "target",
                                 rank=trace.rank, started_ns=_number(facts), properties=properties)
    if facts.steps.per_step:
        _steps(writer, facts, process)
    _memory(writer, facts, process, devices)
    writer.commit()
    for note in trace.notes:
        writer.event(trace.base_ns, "import_note", "warning" if trace.losses.any else "info", note,
                     process=process)


def _number(facts: TraceFacts) -> int:
    """What tells processes with the same pid apart: ranks of several machines may share one."""
    return facts.trace.base_ns + (facts.trace.rank or 0)


def _devices(writer: RunWriter, trace: Trace, several: bool) -> dict[int, int]:
    """Id in the run by id in the trace. A trace has no UUID: rank and number stand for it."""
    found = {}
    for number in sorted(set(trace.device.device.tolist())):
        known = told_of(trace, number)
        memory = known.get("totalGlobalMem")
        rank = f"rank {trace.rank if trace.rank is not None else trace.source}, " if several else ""
        found[number] = writer.add_device(
            str(known.get("uuid") or f"trace: {rank}device {number}"), number,
            str(known.get("name") or "GPU, not named in the trace"),
            memory_total=memory if isinstance(memory, int) else None, properties=dict(known))
    return found


def _steps(writer: RunWriter, facts: TraceFacts, process: int) -> None:
    """Host windows of every step, and of each the time inside the loader."""
    steps, base = facts.steps, facts.trace.base_ns
    rows = fetches(facts, every=True)
    host = facts.trace.host
    waiting = intervals.union(host.start[rows], host.end[rows])
    data = intervals.covered(waiting, steps.start, steps.end)
    tracks = {metric: writer.track(metric, process=process)
              for metric in ("step.index", "step.wall", "step.data", "step.flags")}
    for k in range(len(steps)):
        t1 = (base + int(steps.end[k]) + 500) // 1000 * 1000  # the file keeps whole microseconds
        wall = int(steps.end[k] - steps.start[k])
        for metric, value in (("index", int(steps.number[k])), ("wall", wall), ("data", int(data[k])),
                              ("flags", 0)):
            writer.sample(tracks[f"step.{metric}"], t1, value)


def _memory(writer: RunWriter, facts: TraceFacts, process: int, devices: Mapping[int, int]) -> None:
    """Allocated and reserved bytes of the devices, where the trace tells totals."""
    for line in facts.timelines:
        device = devices.get(line.device)
        if line.device_type == CPU or device is None or not line.known:
            continue
        for metric, column in (("allocated", line.allocated), ("reserved", line.reserved)):
            known = np.flatnonzero(column >= 0)
            known = known[:: max(1, -(-len(known) // _MOST))]
            if len(known):
                track = writer.track(f"torch.mem_{metric}", device=device, process=process)
                for t, value in zip(line.time[known].tolist(), column[known].tolist(), strict=True):
                    writer.sample(track, facts.trace.base_ns + t, value)
