"""What is known of one span of a trace, and the spans it is tied to. Free of Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.timeline.build import Traced
from profiler.analysis.trace.code.stacks import stacks
from profiler.rules.words import frame_title
from profiler.trace.model import NONE, Codes, Kind
from profiler.units import format_bandwidth, format_bytes, format_count, format_ms, format_time

MOST_LINKS = 200  # arrows of one span
_KIND = {
    Kind.OPERATOR: "operator",
    Kind.ANNOTATION: "annotation",
    Kind.PYTHON: "Python function",
    Kind.RUNTIME: "runtime call",
    Kind.DRIVER: "driver call",
    Kind.OVERHEAD: "profiler's own",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "copy",
    Kind.MEMSET: "memset",
}


@dataclass(frozen=True)
class Details:
    """`pairs`: (label, value). `links`: numbers of spans, (from the launch, to the activity)."""

    span: int
    title: str
    kind: str
    pairs: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[int, int], ...] = ()


def from_json(told: dict[str, Any]) -> Details:
    return Details(
        int(told["span"]),
        str(told["title"]),
        str(told["kind"]),
        tuple((str(a), str(b)) for a, b in told["pairs"]),
        tuple((int(a), int(b)) for a, b in told["links"]),
    )


@dataclass(frozen=True)
class Numbers:
    """For every row of a process's tables the number of its span; NONE where it is drawn nowhere."""

    host: Codes
    device: Codes


def of_host(traced: Traced, row: int, span: int, numbers: Numbers) -> Details:
    host, j, texts = traced.trace.host, traced.facts.joined, traced.trace.names
    owners = traced.facts.owners

    def text(code: int) -> str:
        return texts[code] if code >= 0 else ""

    launched = np.flatnonzero(j.launch == row)
    if not len(launched) and j.is_call[row]:
        launched = np.flatnonzero(j.launch == j.outer_call[row])
    children = _under(traced, row)
    operator, module = int(owners.operator[row]), int(owners.module[row])
    device = traced.trace.device
    pairs = [
        ("Start", _at(traced, int(host.start[row]))),
        ("Duration", format_time(int(host.end[row] - host.start[row]))),
    ]
    if owners.is_operator[row] or j.is_call[row]:
        pairs.append(("Self", format_time(int(owners.self_time[row]))))
    if len(children):
        long = int((device.end - device.start)[children].sum())
        pairs.append(("Device time", format_time(long)))
        pairs.append(("Activities", format_count(len(children))))
    if operator not in (NONE, row):
        pairs.append(("Operator", text(int(host.name[operator]))))
    if module != NONE:
        pairs.append(("Module", owners.paths.texts[int(owners.paths.code[module])]))
    at = row if host.dims[row] >= 0 else operator
    if at >= 0:
        pairs += [("Shapes", text(int(host.dims[at]))), ("Types", text(int(host.types[at])))]
    pairs += _called_from(traced, row)
    if j.is_call[row]:
        pairs.append(("Correlation", str(int(host.correlation[row]))))
    links = [(span, int(numbers.device[k])) for k in launched.tolist()]
    return _details(
        span, text(int(host.name[row])), _KIND.get(Kind(int(host.kind[row])), "span"), pairs, links
    )


def of_device(traced: Traced, row: int, span: int, numbers: Numbers) -> Details:
    device, host, texts = traced.trace.device, traced.trace.host, traced.trace.names
    owners, j = traced.facts.owners, traced.facts.joined
    long = int(device.end[row] - device.start[row])
    pairs = [("Start", _at(traced, int(device.start[row]))), ("Duration", format_time(long))]
    launch = int(j.launch[row])
    if launch >= 0:
        delay = int(device.start[row] - host.start[launch])
        pairs.append(("Launch to start", format_time(delay)))
    if device.kind[row] == Kind.KERNEL:
        if device.grid[row] > 0:
            shape = f"{format_count(int(device.grid[row]))}, {format_count(int(device.block[row]))}"
            pairs.append(("Grid, block", shape))
        if device.registers[row] > 0:
            pairs.append(("Registers", format_count(int(device.registers[row]))))
        if device.shared[row] > 0:
            pairs.append(("Shared memory", format_bytes(int(device.shared[row]))))
    if device.bytes[row] > 0:
        pairs.append(("Size", format_bytes(int(device.bytes[row]))))
        if long > 0:
            pairs.append(("Rate", format_bandwidth(int(device.bytes[row]) / long * 1e9)))
    pairs.append(("Stream", f"{int(device.stream[row])} of GPU {int(device.device[row])}"))
    operator, module = int(owners.device_operator[row]), int(owners.device_module[row])
    if operator >= 0:
        pairs.append(("Operator", texts[host.name[operator]]))
        for label, column in (("Shapes", host.dims), ("Types", host.types)):
            if column[operator] >= 0:
                pairs.append((label, texts[column[operator]]))
    if module >= 0:
        pairs.append(("Module", owners.paths.texts[int(owners.paths.code[module])]))
    caller = launch if launch >= 0 else operator
    if caller >= 0:
        pairs += _called_from(traced, caller)
    if device.correlation[row] > 0:
        pairs.append(("Correlation", str(int(device.correlation[row]))))
    links = [(int(numbers.host[launch]), span)] if launch >= 0 else []
    return _details(
        span, texts[device.name[row]], _KIND.get(Kind(int(device.kind[row])), "activity"), pairs, links
    )


def _details(
    span: int, title: str, kind: str, pairs: list[tuple[str, str]], links: list[tuple[int, int]]
) -> Details:
    shown = tuple((label, value) for label, value in pairs if value and value != "[]")
    return Details(span, title, kind, shown, tuple(link for link in links if NONE not in link)[:MOST_LINKS])


def _at(traced: Traced, t: int) -> str:
    return format_ms(t + traced.shift, 3)


def _called_from(traced: Traced, row: int) -> list[tuple[str, str]]:
    """The innermost frames that are not of torch itself."""
    text = stacks(traced.facts.joined, np.array([row]))[0]
    frames = [frame.strip() for frame in text.split(";") if frame.strip()]
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame
        and "torch/" not in frame
        and not frame.startswith(("<built-in", "nn.Module"))
    ]
    return [("Called from", frame_title(frame)) for frame in (own or frames)[:3]]


def _under(traced: Traced, row: int) -> Codes:
    """Device rows launched by calls that lie in this host row."""
    host, j = traced.trace.host, traced.facts.joined
    launch = j.launch
    at = np.maximum(launch, 0)
    inside = (
        (launch >= 0)
        & (host.thread[at] == host.thread[row])
        & (host.start[at] >= host.start[row])
        & (host.end[at] <= host.end[row])
    )
    return np.flatnonzero(inside).astype(np.int32)
