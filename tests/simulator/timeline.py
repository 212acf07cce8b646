"""What happened in a simulated run: the records of the machine."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A runtime call as it happened, ns; `kind` is the action's op."""

    start: int
    end: int
    name: str
    thread: str
    correlation: int
    kind: int
    stream: int
    info: Any
    device: int


class Activity(NamedTuple):
    """A device activity as it happened, ns; `call` is its row in Timeline.calls, -1 if before the window."""

    start: int
    end: int
    name: str
    device: int
    stream: int
    call: int
    kind: str  # compute, communication, h2d_pageable, h2d_pinned, d2h, d2d, memset
    info: Any
    peer: bool  # it waited longest for another device


class Span(NamedTuple):
    start: int
    end: int
    name: str
    thread: str
    category: str
    sequence: int = 0  # of a forward operator; negative: of the node of its backward


@dataclass
class Timeline:
    """What happened from the first traced step on."""

    step_start: list[int] = field(default_factory=list)
    step_end: list[int] = field(default_factory=list)
    last: list[dict[int, int]] = field(default_factory=list)  # per step, device: end of the last activity
    waits: list[int] = field(default_factory=list)  # of each traced fetch, above its own time
    spans: list[Span] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    activities: list[Activity] = field(default_factory=list)
    labels: list[tuple[int, int, str]] = field(default_factory=list)  # what the chain did, sorted, disjoint
    end: int = 0


def lose(timeline: Timeline, share: float, seed: int) -> None:
    """Leave out the launches of some kernels, as buffers that overflow do; their activities stay."""
    r = random.Random(seed)
    number, kept = {-1: -1}, []
    for row, call in enumerate(timeline.calls):
        lost = call.name == "cudaLaunchKernel" and r.random() < share
        number[row] = -1 if lost else len(kept)
        if not lost:
            kept.append(call)
    timeline.calls = kept
    timeline.activities = [a._replace(call=number[a.call]) for a in timeline.activities]
