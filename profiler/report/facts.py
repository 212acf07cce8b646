"""What a report says about a run besides its diagnosis: settings, machine, overhead, what is missing."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from profiler.analysis.series import gaps, spacing
from profiler.model import mapping
from profiler.report import devices
from profiler.rules.words import failure, format_plain, listed, pairs, setting
from profiler.units import (
    clock,
    format_bytes,
    format_count,
    format_share,
    format_time,
)

if TYPE_CHECKING:
    from profiler.run.reader import Run

Rows = list[tuple[str, str]]
OUTPUT_LINES = 40
MOST_EVENTS = 100
LATE_NS = 2e9  # how much later than the host's a sample of a GPU may come
WATCHED = ("gpu.util", "gpu.power", "gpu.pcie_rx", "host.cpu", "target.cpu")  # one or two of each source


def heading(run: Run) -> dict[str, str]:
    """Name of the run, when it was recorded, and how long it took."""
    start = run.start_ns
    local = datetime.datetime.fromtimestamp(start / 1e9).astimezone()
    broken = failure(run.meta.get("exit")) or "ended early"
    state = {"partial": broken, "recording": "still recording"}.get(run.state, "")
    return {"name": str(run.meta.get("name") or run.path.stem), "state": state,
            "when": local.strftime("%Y-%m-%d %H:%M:%S %Z") if start else "",
            "duration": format_time(max(0, run.end_ns - start)) if start else "",
            "notes": str(run.meta.get("notes") or "")}


def settings(run: Run) -> list[tuple[str, Rows]]:
    """Groups of rows: workload, loader, command, machine, users of GPUs, versions, environment."""
    meta = run.meta
    workload = mapping(meta.get("workload"))
    found: list[tuple[str, Rows]] = []
    if workload:
        found.append((f"Workload {workload.get('name', '')}", pairs(mapping(workload.get("settings")))))
    for process in run.processes:
        loader = mapping(process.properties.get("loader"))
        if loader:
            title = "Loader" if process.rank is None else f"Loader of rank {process.rank}"
            found.append((title, pairs({k: v for k, v in loader.items() if k != "train"})))
    found.append(("Command", _command(run)))
    found.append(("Machine", devices.machine(run)))
    found.append(("Processes on GPUs", devices.processes(run)))
    found.append(("Versions", _versions(run)))
    if environment := pairs(mapping(meta.get("environment"))):
        found.append(("Environment", environment))
    return [(title, rows) for title, rows in found if rows]


def _command(run: Run) -> Rows:
    meta = run.meta
    rows = [("command", shlex.join(str(word) for word in meta.get("command") or ())),
            ("folder", str(meta.get("cwd") or "")), ("recorded by", str(meta.get("kind") or ""))]
    ended = mapping(meta.get("exit"))
    if ended:
        how = listed((f"status {ended['code']}" if ended.get("code") is not None else "",
                      str(ended.get("signal") or ""), str(ended.get("reason") or "")))
        rows.append(("end", how))
    git = mapping(meta.get("git"))
    if git:
        commit = str(git.get("commit") or "")[:12]
        rows.append(("git", listed((commit, str(git.get("branch") or ""),
                                    "with changes" if git.get("dirty") else ""))))
    if meta.get("intervene"):
        changed = listed(f"{k} {setting(v)}" for k, v in meta["intervene"].items())
        rows.append(("changed by an experiment", changed))
    return [(name, value) for name, value in rows if value]


def _versions(run: Run) -> Rows:
    known = dict(mapping(run.meta.get("versions")))
    gpu = mapping(run.meta.get("gpu"))
    known |= {name: gpu[name] for name in ("driver", "cuda_driver", "nvml", "amdsmi") if gpu.get(name)}
    for process in run.processes:
        torch = mapping(process.properties.get("torch"))
        known |= {"torch": torch.get("version"), "torch's CUDA": torch.get("cuda"),
                  "torch's ROCm": torch.get("hip")} if torch else {}
    titles = {"stepscope": "StepScope", "python": "Python of the recorder",
              "cuda_driver": "CUDA of the driver"}
    rows = {titles.get(name, name): value for name, value in known.items()}
    programs = {str(p.properties["python"]) for p in run.processes if p.properties.get("python")}
    return pairs(rows | {"Python of the program": listed(sorted(programs))})


def overhead(run: Run) -> tuple[Rows, list[tuple[str, ...]]]:
    """What the recording itself cost and missed; and a row for each source."""
    told = mapping(run.meta.get("overhead"))
    dropped = sum(latest[1] for track in run.find("recorder.dropped") if (latest := run.latest(track.id)))
    share = format_share(told["cpu_share"], 1) if _number(told, "cpu_share") else ""
    rows = [
        ("CPU of the recorder", f"{share} of one core" if share else ""),
        ("memory of the recorder, peak", format_bytes(told.get("peak_rss"))),
        ("ticks missed", format_count(told.get("missed"))),
        ("records of the probe dropped", format_count(dropped) if run.find("step.wall") else ""),
    ]
    sources: list[tuple[str, ...]] = []
    for name, source in mapping(told.get("sources")).items():
        off = str(source.get("off") or "")
        late = source.get("lateness_max_ns")
        sources.append((str(name), _rate(source.get("asked_hz")), "" if off else _rate(source.get("rate_hz")),
                        format_count(source.get("missed")), "" if off else format_time(late), off))
    return [(name, value) for name, value in rows if value], sources


def missing(run: Run) -> list[str]:
    """What was not measured, each with its reason, in order of first telling."""
    found: dict[str, None] = {}
    gpu = mapping(run.meta.get("gpu"))
    if gpu.get("state") == "absent":
        why = str(gpu.get("reason") or "no reason was given")
        found[f"GPU figures: {why}. {gpu.get('hint') or ''}".strip()] = None
    quiet = str(gpu.get("reason") or "\0")
    for event in run.events():
        if event.kind in ("field_absent", "device_absent", "source_off", "hook_off", "probe_absent",
                          "records_dropped", "spool_damaged", "trace_lost") and quiet not in event.text:
            found[event.text] = None
    if run.lacks is not None:
        found[run.lacks] = None
    if run.meta.get("journal_note"):
        found[str(run.meta["journal_note"])] = None
    return list(found)


def holes(run: Run) -> list[str]:
    """Times without samples, by signal: gaps are left open in the charts."""
    found, labels = [], {device.id: device.label for device in run.devices}
    host = max((latest[0] for one in run.find("host.cpu") if (latest := run.latest(one.id))), default=None)
    for metric in WATCHED:
        for track in run.find(metric):
            series = run.series(track.id, points=2000)
            spans = gaps(series.t_ns)
            several = track.device is not None and len(run.devices) > 1
            device = f" of {labels[track.device]}" if several and track.device in labels else ""
            since = int(series.t_ns[-1]) if len(series.t_ns) and metric.startswith("gpu.") else None
            if since and host and host - since > 3 * np.nan_to_num(spacing(series.t_ns)) + LATE_NS:
                found.append(f"{metric}{device}: none after {clock(since - run.start_ns)}, "
                             f"the last {format_time(host - since)}")
            if len(spans):
                lost = int(np.diff(spans, axis=1).sum())
                count = "1 gap" if len(spans) == 1 else f"{len(spans)} gaps"
                found.append(f"{metric}{device}: {count}, {format_time(lost)} in all, the first at "
                             f"{clock(int(spans[0, 0]) - run.start_ns)}")
    return found


def events(run: Run) -> tuple[list[tuple[str, str, str]], int]:
    """(clock, severity, text) of what happened, and how many more there are."""
    wanted = ("mark", "intervention", "target_exit")
    told = [e for e in run.events() if e.severity != "info" or e.kind in wanted]
    rows = [(clock(e.t_ns - run.start_ns), e.severity, e.text) for e in told[:MOST_EVENTS]]
    return rows, len(told) - len(rows)


def traces(run: Run) -> Rows:
    """Profiler windows that the run holds, with their sizes."""
    return [(a.name, listed((format_bytes(a.size), str(a.properties.get("note") or ""))))
            for a in run.attachments()]


def output_end(run: Run) -> list[str]:
    """The last lines that the program wrote, where its output was recorded."""
    text = b"".join(data for _, _, data in run.output()).decode("utf-8", "replace")
    lines = [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]
    return [line for line in lines if line.strip()][-OUTPUT_LINES:]


def _rate(hz: Any) -> str:
    return f"{format_plain(round(hz, 2))} Hz" if isinstance(hz, int | float) else ""


def _number(told: Mapping[str, Any], key: str) -> bool:
    return isinstance(told.get(key), int | float)
