"""Which stage's colour a span of a trace wears. Free of Qt."""

from __future__ import annotations

import re

import numpy as np

from app.timeline.spans import CODE, Small
from profiler.analysis.trace.breakdown.labels import Labels
from profiler.analysis.trace.code.owners import nearest
from profiler.analysis.trace.joined import Joined, take
from profiler.analysis.trace.steps import Steps
from profiler.trace import names
from profiler.trace.model import Flags, Kind
from profiler.trace.names import Call

_NO_MARK = 255
_COMMUNICATION = re.compile(r"^(nccl|gloo|mpi|ucc|rccl|c10d)\b|^(nccl|c10d)[:_]|record_param_comms", re.I)
_WORDS = {
    stage: re.compile(rf"(^|[^a-z]){stage}([^a-z]|$)", re.I) for stage in ("forward", "backward", "optimizer")
}  # what users and frameworks call them
_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)\b")


def of_host(j: Joined, steps: Steps, labels: Labels) -> Small:
    """Place in COLOURS of every host row: its own stage, else that of what it lies in, else its thread's."""
    host = j.trace.host
    mark = np.full(len(host), _NO_MARK, np.uint8)
    optimizer = _named(j, _OPTIMIZER)
    annotation = host.kind == Kind.ANNOTATION
    for rows, stage in (
        *((annotation & _named(j, pattern), stage) for stage, pattern in _WORDS.items()),
        (j.backward, "backward"),
        (optimizer, "optimizer"),
        (j.fetch, "data"),
        (_named(j, _COMMUNICATION), "communication"),
        (j.call == Call.MEMCPY, "h2d"),
        (j.call == Call.SYNC, "sync"),
    ):
        mark[rows & (host.kind != Kind.PYTHON)] = CODE[stage]
    marked = nearest(j.parent, mark != _NO_MARK)
    found = take(mark, marked, _NO_MARK)
    thread = np.full(len(j.trace.threads) + 1, CODE["other"], np.uint8)
    if steps.thread >= 0:
        thread[steps.thread] = CODE["forward"]
    thread[labels.autograd_threads] = CODE["backward"]
    own = np.where(np.isin(host.kind, (Kind.ANNOTATION, Kind.OVERHEAD)), CODE["other"], thread[host.thread])
    return np.where(found == _NO_MARK, own, found).astype(np.uint8)


def of_device(j: Joined, host: Small) -> Small:
    """Place in COLOURS of every device row: what it is, else the stage that launched it."""
    kind = j.trace.device.kind
    launched = take(host, j.launch, CODE["other"])
    launched = np.where(np.isin(launched, (CODE["sync"], CODE["h2d"])), CODE["other"], launched)
    result = np.where(kind == Kind.MEMCPY, CODE["h2d"], launched)
    result = np.where(kind == Kind.MEMSET, CODE["other"], result)
    return np.where(j.communication, CODE["communication"], result).astype(np.uint8)


def _named(j: Joined, pattern: re.Pattern[str]) -> Flags:
    return j.host_names(lambda name: bool(pattern.search(name))).astype(np.bool_) & ~j.is_call


def is_step(j: Joined) -> Flags:
    """Host rows that mark a step: they are a lane of their own."""
    return j.host_names(names.step_number, -1) >= 0
