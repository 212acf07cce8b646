"""The truth about a simulated run, by definitions, sections 1, 3, 4, 5; written apart from the profiler."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from tests.simulator import actions as A
from tests.simulator.actions import Program
from tests.simulator.machine import run
from tests.simulator.scenarios import SCENARIOS, changed, no_input_wait, overlapped_transfer
from tests.simulator.timeline import Activity, Timeline

KINDS = ("h2d_pageable", "h2d_pinned", "h2d", "d2h", "d2d", "p2p", "memset")
WORDS = {
    "no_input_wait": "input_bound",
    "no_transfer": "transfer_bound",
    "overlapped_transfer": "transfer_bound",
    "no_sync": "sync_bound",
    "no_launch_overhead": "launch_bound",
    "no_host_work": "host_bound",
    "no_allocator": "allocator_bound",
    "no_communication": "communication_bound",
    "overlapped_communication": "communication_bound",
}


def counted(n: int, restart: int = -1) -> list[int]:
    """Steps that enter medians: not the first of a profiler window, when at least three remain."""
    rest = [k for k in range(1, n) if k != restart]
    return rest if len(rest) >= 3 else list(range(n))


@dataclass(frozen=True)
class Steady:
    """Windows of the partition, and the steady step time; ns."""

    kind: str
    windows: list[tuple[int, int]]
    rows: list[int]  # steps that count
    step: float  # median
    mean: float
    ratio: float  # device over host


def steady(timeline: Timeline, device: int, restart: int = -1) -> Steady:
    """Host windows, or those between last activities of successive steps of one profiler window."""
    host = list(zip(timeline.step_start, timeline.step_end, strict=True))
    rows = counted(len(host), restart)
    ends = [last.get(device, 0) for last in timeline.last]
    follows = [k for k in rows if k > 0 and k != restart and ends[k - 1] and ends[k]]
    between = [(ends[k - 1], ends[k]) for k in follows]
    lengths = [host[k][1] - host[k][0] for k in rows]
    by_host = median(lengths)
    by_device = median([b - a for a, b in between]) if between else 0.0
    ratio = by_device / by_host
    if ratio > 1.02:
        windows = [(ends[max(k - 1, 0)] if k != restart else ends[k], ends[k]) for k in range(len(host))]
        return Steady("device", windows, follows, by_device, mean(b - a for a, b in between), ratio)
    return Steady("host", host, rows, by_host, mean(lengths), ratio)


def busiest(timeline: Timeline) -> int:
    """The device with most compute."""
    total: dict[int, int] = defaultdict(int)
    for a in timeline.activities:
        total[a.device] += (a.end - a.start) * (a.kind == "compute")
    return max(total, key=lambda d: total[d], default=0)


class Partition:
    """Classes of every instant of one device, as a sorted list of (start, end, class)."""

    def __init__(self, timeline: Timeline, device: int) -> None:
        self.timeline = timeline
        self.own = sorted(
            (a for a in timeline.activities if a.device == device), key=lambda a: (a.start, a.end)
        )
        self.label_starts = [start for start, _, _ in timeline.labels]
        latencies = [a.start - timeline.calls[a.call].start for a in self.own if a.call >= 0]
        self.usual = int(median(latencies)) if latencies else 0
        self.pieces: list[tuple[int, int, str]] = []
        self.cut()

    def cut(self) -> None:
        timeline, own = self.timeline, self.own
        begin, end = timeline.step_start[0], max(timeline.end, *(a.end for a in own)) + 1
        edges = sorted({begin, *(t for a in own for t in (a.start, a.end) if t > begin)})
        active: list[Activity] = []
        following = 0
        for t0, t1 in zip(edges, [*edges[1:], end], strict=True):
            while following < len(own) and own[following].start <= t0:
                active.append(own[following])
                following += 1
            active = [a for a in active if a.end > t0]
            if active:
                self.pieces.append((t0, t1, busy(active)))
                continue
            while following < len(own) and own[following].end <= own[following].start <= t0:
                following += 1
            self.idle(t0, t1, own[following] if following < len(own) else None)

    def idle(self, g0: int, g1: int, after: Activity | None) -> None:
        if after is None or after.call < 0:
            split = g1 if after is None else max(g0, g1 - self.usual)
            self.host(g0, split)
            self.put(split, g1, "queued")
            return
        call = self.timeline.calls[after.call]
        self.host(g0, min(call.start, g1))
        kind = "transfer_host" if call.kind == A.COPY else "host"
        self.put(max(g0, call.start), min(call.end, g1), kind)
        self.put(max(g0, call.end), g1, "queued:peer" if after.peer else "queued")

    def host(self, t0: int, t1: int) -> None:
        """What the chain did in [t0, t1)."""
        if t1 <= t0:
            return
        labels = self.timeline.labels
        k, at = max(bisect_right(self.label_starts, t0) - 1, 0), t0
        while at < t1 and k < len(labels):
            start, end, label = labels[k]
            k += 1
            if end <= at:
                continue
            if start >= t1:
                break
            self.put(at, start, "host")
            self.put(max(at, start), min(end, t1), label)
            at = min(end, t1)
        self.put(at, t1, "host")

    def put(self, t0: int, t1: int, label: str) -> None:
        if t1 > t0:
            self.pieces.append((t0, t1, label))

    def of(self, t0: int, t1: int) -> tuple[dict[str, int], dict[str, int]]:
        """Time by class in [t0, t1), and exposed transfer by kind; ns."""
        classes: dict[str, int] = defaultdict(int)
        kinds: dict[str, int] = defaultdict(int)
        for start, end, label in self.pieces:
            length = min(end, t1) - max(start, t0)
            if length <= 0:
                continue
            if label in KINDS:
                kinds[label] += length
                label = "transfer_exposed"
            classes[label] += length
        if t0 < self.timeline.step_start[0]:
            raise ValueError("a window before the trace")
        return dict(sorted(classes.items())), dict(sorted(kinds.items()))


def busy(active: list[Activity]) -> str:
    kinds = {a.kind for a in active}
    if "compute" in kinds:
        return "compute"
    if "communication" in kinds:
        return "communication_exposed"
    return next(kind for kind in KINDS if kind in kinds)


def what_if(program: Program, device: int, base: Steady, base_line: Timeline) -> list[dict[str, Any]]:
    """Speedup of every scenario, and of its other readings."""
    share = mean(base_line.waits) / base.step if base_line.waits else 0.0
    unknown = program.loader.workers > 0 and share < 0.01
    rows = []
    for name, (change, others) in SCENARIOS.items():
        if name == "overlapped_communication" and gathers(program):
            continue  # the table speaks of gradients
        without = _without(changed(program, change), program, device, base)
        also = []
        readings = [(when, changed(program, other)) for when, other in others.items()]
        if unknown and name != "no_input_wait":
            ready = changed(changed(program, change), no_input_wait)
            readings.append(("a loader that never made the loop wait", ready))
        if name == "overlapped_transfer" and _pageable(program):
            readings.append(("copies at the pinned rate", changed(program, overlapped_transfer(0.3))))
        for when, other in readings:
            speedup = base.step / _without(other, program, device, base).step
            if abs(speedup - base.step / without.step) > 0.001:
                also.append({"when": when, "speedup": round(speedup, 5)})
        rows.append(
            {
                "scenario": name,
                "speedup": round(base.step / without.step, 5),
                "speedup_of_mean": round(base.mean / without.mean, 5),
                "also": also,
            }
        )
    return rows


def _without(other: Program, program: Program, device: int, base: Steady) -> Steady:
    """Of a changed program; what was not changed is not simulated again."""
    return base if other.steps == program.steps else steady(run(other), device, program.restart)


def gathers(program: Program) -> bool:
    """Whether the forward communicates."""
    step = program.steps[-1]
    turns = [k for k, a in enumerate(step) if a.op == A.THREAD]
    return any(a.op == A.LAUNCH and a.info.communication for a in step[: turns[0] if turns else 0])


def _pageable(program: Program) -> bool:
    return any(
        a.op == A.COPY and a.role == A.BATCH and a.info.memory == "pageable" for a in program.steps[-1]
    )


def verdicts(gains: dict[str, float], compute: float) -> tuple[str, list[str], str]:
    """The verdict, those that count as right, and why there are several."""
    best: dict[str, float] = defaultdict(float)
    for name, speedup in gains.items():
        if name in WORDS:
            best[WORDS[name]] = max(best[WORDS[name]], speedup - 1)
    word, gain = max(best.items(), key=lambda item: item[1])
    plain = "compute_bound" if compute >= 0.85 else "unknown"
    verdict = word if gain > 0.05 else plain
    accept, why = [verdict], []
    near = [w for w, g in best.items() if w != word and g >= 0.9 * gain and g > 0.045]
    if gain > 0.045 and near:
        why.append("two classes within 10 % of each other's gain")
        accept += near
    if 0.045 <= gain <= 0.055:
        why.append("gain near 5 %")
        accept += [word, *near, plain]
    if gain <= 0.055 and abs(compute - 0.85) < 0.01:
        why.append("compute near 85 %")
        accept += ["compute_bound", "unknown"]
    accept = list(dict.fromkeys(accept))
    return ("ambiguous" if near and gain > 0.045 else verdict), accept, "; ".join(why)


def tell(program: Program, timeline: Timeline, predict: bool = True) -> dict[str, Any]:
    """What truth.jsonl holds about one trace; without `predict` no scenario and no verdict."""
    device = busiest(timeline)
    base, parts = steady(timeline, device, program.restart), Partition(timeline, device)
    zero = timeline.step_start[0]
    steps, sums = [], defaultdict(int)
    for k, (t0, t1) in enumerate(base.windows):
        t0 = max(t0, zero)
        classes, kinds = parts.of(t0, t1)
        if sum(classes.values()) != t1 - t0:
            raise AssertionError("the classes do not sum to the window")
        steps.append(
            {
                "number": program.number(k),
                "from_ns": t0 - zero,
                "to_ns": t1 - zero,
                "ns": t1 - t0,
                "partition_ns": classes,
                "transfer_by_kind_ns": kinds,
            }
        )
        for label, ns in classes.items():
            sums[label] += ns if k in base.rows else 0
    window = sum(steps[k]["ns"] for k in base.rows)
    rows = what_if(program, device, base, timeline) if predict else []
    compute = sums["compute"] / window
    verdict, accept, why = _accept(rows, compute) if predict else ("", [], "")
    real = [r for r in rows if max(r["speedup"], r["speedup_of_mean"]) >= 1.05]
    scored = all(abs(r["speedup"] / r["speedup_of_mean"] - 1) < 0.02 for r in real)
    names = sorted({label for s in steps for label in s["partition_ns"]})
    each = {n: median([steps[k]["partition_ns"].get(n, 0) for k in base.rows]) / 1e6 for n in names}
    return {
        "verdict": verdict,
        "accept": accept,
        "why": why,
        "windows": base.kind,
        "device": device,
        "step_ms": {"median": base.step / 1e6, "mean": base.mean / 1e6},
        "device_over_host": round(base.ratio, 5),
        "counted_steps": [program.number(k) for k in base.rows],
        "steps": steps,
        "partition_ms": each,
        "compute_share": round(compute, 4),
        "what_if": rows,
        "what_if_scored": scored,
    }


def _accept(rows: list[dict[str, Any]], compute: float) -> tuple[str, list[str], str]:
    """By the first reading; a verdict that another one gives counts too."""
    gains = {r["scenario"]: r["speedup"] for r in rows}
    verdict, accept, why = verdicts(gains, compute)
    readings = [("mean and median differ", {r["scenario"]: r["speedup_of_mean"] for r in rows})]
    readings += [(a["when"], {**gains, r["scenario"]: a["speedup"]}) for r in rows for a in r["also"]]
    for when, other in readings:
        more = [word for word in verdicts(other, compute)[1] if word not in accept]
        if more:
            why = "; ".join(filter(None, (why, when)))
            accept += more
    return verdict, accept, why
