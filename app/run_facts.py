"""What the status bar says of the open run: its device, what the recorder cost and lost, its size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profiler.model import Device
from profiler.run.reader import Run
from profiler.units import format_bytes, format_count, format_gib, format_share


@dataclass(frozen=True)
class RunFacts:
    """`overhead`: the recorder's CPU time as a share of one core; None where it is not known."""

    devices: tuple[Device, ...]
    overhead: float | None
    dropped: int
    size: int  # bytes, with what the database has not merged yet
    recording: bool
    host: str = ""  # of a run without a GPU


def read_facts(run: Run) -> RunFacts:
    """Ask the run; for the worker thread."""
    over = run.meta.get("overhead")
    overhead = over.get("cpu_share") if isinstance(over, dict) else None
    if overhead is None:
        newest = [sample[1] for track in run.find("recorder.cpu") if (sample := run.latest(track.id))]
        overhead = newest[0] if newest else None
    lost = [sample[1] for track in run.find("recorder.dropped") if (sample := run.latest(track.id))]
    parts = (run.path, run.path.with_name(run.path.name + "-wal"))
    size = sum(_size(part) for part in parts)
    return RunFacts(tuple(run.devices), overhead, int(sum(lost)), size, run.state == "recording", _host(run))


def _host(run: Run) -> str:
    gpu = run.meta.get("gpu")
    if run.devices or not isinstance(gpu, dict) or gpu.get("state") != "absent":
        return ""
    machine = run.meta.get("machine")
    machine = machine if isinstance(machine, dict) else {}
    counts = [machine.get(name) for name in ("cores", "cores_usable", "cores_quota")]
    cores = min((max(1, int(n)) for n in counts if isinstance(n, int | float)), default=None)
    sizes = [machine.get(name) for name in ("memory_bytes", "memory_limit")]
    memory = min((n for n in sizes if isinstance(n, int | float)), default=None)  # what a container may use
    said = [f"{cores} core{'' if cores == 1 else 's'}"] if cores is not None else []
    said += [format_gib(memory)] if memory is not None else []
    return ", ".join([*said, "no GPU"])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def texts(facts: RunFacts) -> dict[str, str]:
    """The fields of the status bar."""
    found = {
        "dropped": f"{format_count(facts.dropped)} record{'' if facts.dropped == 1 else 's'} dropped",
        "overhead": "" if facts.overhead is None else f"own overhead {format_share(facts.overhead, 1)}",
        "run_file": f"run file {format_bytes(facts.size)}",
    }
    if facts.devices:
        first = facts.devices[0]
        memory = f", {format_gib(first.memory_total)}" if first.memory_total else ""
        more = f" and {len(facts.devices) - 1} more" if len(facts.devices) > 1 else ""
        found["device"] = f"{first.name}{memory}{more}"
    elif facts.host:
        found["device"] = facts.host
    return found
