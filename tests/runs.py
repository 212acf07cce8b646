"""Run files with planned contents, written the way a recorder does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from profiler.model import STAGES, STEP_EPOCH_FIRST
from profiler.run.writer import RunWriter

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
STAGE_MS = {"data": 36.2, "h2d": 4.1, "forward": 6.0, "backward": 4.4, "optimizer": 1.2, "other": 0.4}
CPU_STAGES_MS = {"data": 2.0, "forward": 20.0, "backward": 30.0, "optimizer": 3.0, "other": 1.0}
UUID = "GPU-00000000-0000-0000-0000-000000000001"

Planned = float | Callable[[int], float | None]  # a constant, or by step (or tick), None: missing


def make_run(
    path: Path,
    *,
    steps: int = 60,
    stages: Mapping[str, Planned] = STAGE_MS,
    samples: int | None = 64,
    flags: Callable[[int], int] | None = None,
    workers: int | None = 0,
    loader: Mapping[str, Any] | None = None,
    data_cpu: Planned | None = None,
    extras: Mapping[str, Planned] | None = None,
    device: Mapping[str, Planned] | None = None,
    lag: Mapping[str, Planned] | None = None,
    gpu: Mapping[str, Planned] | None = None,
    host: Mapping[str, Planned] | None = None,
    ranks: int | None = None,
    cores: int = 8,
    rate_hz: float = 10.0,
    sites: Mapping[str, list[str]] | None = None,
    properties: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    events: Callable[[RunWriter, int], None] | None = None,
    state: str = "finished",
) -> Path:
    """Write a run and return its path.

    Times (`stages`, `data_cpu`, `device`, `lag`; the names of model.STAGES) are ms per
    step. `workers`: the loader's, None for a loop without a loader. `gpu` and `host`:
    metric to value, in the metric's own unit, sampled at `rate_hz` from start to end;
    a GPU is added when `gpu` is not None. `ranks`: as many processes with the same
    steps; a planned callable may look at nothing but the step. `events` puts in what
    else is wanted; it is handed the writer and the time of the start. `state`:
    "recording" leaves the file as a recorder that is at work.
    """
    writer = RunWriter.create(path, run_meta(cores, rate_hz, gpu is not None) | dict(meta or {}))
    end = START_NS
    for rank in range(ranks or 1):
        said = {**_properties(workers, loader, sites), **(properties or {})}
        process = writer.add_process(4000 + rank, "rank" if ranks else "target", command="python train.py",
                                     rank=rank if ranks else None, started_ns=START_NS, properties=said)
        names = {**{f"step.{s}": p for s, p in stages.items()},
                 **({"step.data_cpu": data_cpu} if data_cpu is not None else {}),
                 **{f"step.device_{s}": p for s, p in (device or {}).items()},
                 **{f"step.lag_{s}": p for s, p in (lag or {}).items()}}
        end = max(end, _steps(writer, process, steps, names, stages, samples, flags, extras or {}))
    if events:
        events(writer, START_NS)
    _live(writer, gpu, host, rate_hz, end)
    if state == "recording":
        writer.commit()
        writer.close()
    else:
        writer.finish(state, end)
    return path


def run_meta(cores: int = 8, rate_hz: float = 10.0, gpu: bool = False) -> dict[str, Any]:
    """What the recorder writes about a run, with plain values."""
    return {
        "name": "planned", "notes": "", "kind": "record", "command": ["python", "train.py"], "cwd": "/tmp",
        "workload": None, "environment": {}, "git": None, "start_ns": START_NS, "rate_hz": rate_hz,
        "versions": {"stepscope": "0.1.0", "python": "3.11.9", "torch": "2.14.1"},
        "machine": {"hostname": "planned", "system": "Linux 6.1", "cpu": "a CPU", "cores": cores,
                    "cores_usable": cores, "memory_bytes": 16 << 30},
        "gpu": {"state": "ok"} if gpu else {"state": "absent", "reason": "no NVML library", "hint": ""},
        "exit": {"code": 0, "signal": None, "reason": "exit"}, "overhead": {},
    }


def at(plan: Planned, k: int) -> float | None:
    return plan(k) if callable(plan) else plan


def _properties(workers: int | None, loader: Mapping[str, Any] | None,
                sites: Mapping[str, list[str]] | None) -> dict[str, Any]:
    if workers is None:
        return {"sites": dict(sites or {})}
    settings = {"num_workers": workers, "batch_size": 64, "prefetch_factor": 2 if workers else None,
                "pin_memory": False, "persistent_workers": False, "dataset": "Planned", "train": True,
                "site": "train.py:57"}
    return {"loader": settings | dict(loader or {}), "sites": dict(sites or {"loader": ["train.py:57"]})}


def _steps(writer: RunWriter, process: int, steps: int, planned_ms: Mapping[str, Planned],
           stages: Mapping[str, Planned], samples: int | None, flags: Callable[[int], int] | None,
           extras: Mapping[str, Planned]) -> int:
    tracks: dict[str, int] = {}

    def put(metric: str, t_ns: int, value: float | None) -> None:
        if value is not None:
            if metric not in tracks:
                tracks[metric] = writer.track(metric, process=process)
            writer.sample(tracks[metric], t_ns, value)

    t = START_NS + 500 * MS
    for k in range(steps):
        wall = sum(round((at(stages.get(stage, 0.0), k) or 0.0) * MS) for stage in STAGES)
        t += wall
        t1 = (t + 500) // 1000 * 1000  # the file keeps whole microseconds
        put("step.index", t1, k)
        put("step.wall", t1, wall)
        put("step.samples", t1, samples)
        put("step.flags", t1, flags(k) if flags else STEP_EPOCH_FIRST if k == 0 else 0)
        for metric, plan in planned_ms.items():
            value = at(plan, k)
            put(metric, t1, None if value is None else round(value * MS))
        for name, plan in extras.items():
            put(f"step.{name}", t1, at(plan, k))
        if k % 100 == 99:
            writer.commit()
    return t


def _live(writer: RunWriter, gpu: Mapping[str, Planned] | None, host: Mapping[str, Planned] | None,
          rate_hz: float, end_ns: int) -> None:
    device = None
    if gpu is not None:
        device = writer.add_device(UUID, 0, "NVIDIA H200", memory_total=140 << 30)
    tracks = [(writer.track(metric, device=device), plan) for metric, plan in (gpu or {}).items()]
    tracks += [(writer.track(metric), plan) for metric, plan in (host or {}).items()]
    for tick in range(int((end_ns - START_NS) / 1e9 * rate_hz) + 1):
        t = START_NS + round(tick / rate_hz * 1e9)
        for track, plan in tracks:
            if (value := at(plan, tick)) is not None:
                writer.sample(track, t, value)
    writer.commit()
