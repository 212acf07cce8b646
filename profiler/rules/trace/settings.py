"""Settings that can be tried against a cause, where a trace shows that they fit."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.trace.code.owners import nearest
from profiler.rules.base import Remedy
from profiler.rules.trace.facts import TraceFacts
from profiler.trace.model import Ints, Kind
from profiler.trace.names import Call, is_optimizer

MOST = 0.5            # share from which one thing is what matters
BUCKET_MB = 25        # that DistributedDataParallel gathers by default
ACCUMULATED = 4       # batches between two updates, to begin with
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")  # optimizers of torch that have a fused form
_COMPILED = re.compile(r"^(Torch-Compiled Region|.*CompiledFxGraph|CompiledFunction|triton_)")


def against_launches(facts: TraceFacts, rows: Ints) -> Remedy | None:
    """A setting with which fewer or cheaper calls launch the same work; None where the trace shows no such.

    `rows`: host rows of the kernel launches in the counted steps.
    """
    if not len(rows):
        return None
    if (found := _fused_optimizer(facts, rows)) is not None:
        return found
    if (facts.joined.call[rows] == Call.GRAPH).any():
        return None
    launched = facts.steps.at(facts.trace.host.start[rows])
    each = np.bincount(launched[launched >= 0], minlength=len(facts.steps))[facts.steps.counted]
    if not facts.steps.per_step:
        return None
    alone = not facts.communication.count  # with collectives a graph is more than a setting
    if alone and len(each) > 1 and (each == each[0]).all():
        return Remedy("cuda_graphs", False, True)  # the same launches in every step
    return None if compiled(facts) else Remedy("compile", "off", "default")


def compiled(facts: TraceFacts) -> bool:
    """Whether the trace shows code of torch.compile."""
    return any(_COMPILED.search(name) for name in facts.trace.names)


def _fused_optimizer(facts: TraceFacts, rows: Ints) -> Remedy | None:
    """Where most launches are an optimizer's that has a fused form and does not use it."""
    host, names = facts.trace.host, facts.trace.names
    step = facts.joined.host_names(is_optimizer).astype(bool) & (host.kind == Kind.ANNOTATION)
    around = nearest(facts.joined.parent, step)
    mine = around[rows] >= 0
    if mine.mean() <= MOST:
        return None
    kinds = {names[code].split("#")[-1].split(".")[0] for code in host.name[around[rows[mine]]].tolist()}
    inside = (around >= 0) & (host.kind == Kind.OPERATOR)
    called = {names[code] for code in np.unique(host.name[inside]).tolist()}
    if not kinds <= set(_FUSED) or any("_fused_" in name for name in called):
        return None
    before = "foreach" if any("_foreach_" in name for name in called) else "per-parameter"
    return Remedy("optimizer", before, "fused")


def against_communication(facts: TraceFacts, overlaps: bool) -> Remedy | None:
    """Smaller buckets where gradients could travel during backward (`overlaps`), else fewer reductions.

    Of DistributedDataParallel alone: other ways to share work have other settings.
    """
    told = facts.communication
    reduced = [row for row in told.rows if row.collective.replace("_", "") == "allreduce"]
    if not any(name.startswith("DistributedDataParallel") for name in facts.trace.names) or \
            sum(row.time_ns for row in reduced) <= MOST * sum(row.time_ns for row in told.rows):
        return None
    largest = max((row.bytes or 0 for row in reduced), default=0) / (1 << 20)
    if overlaps and largest > BUCKET_MB:
        return Remedy("bucket_cap_mb", round(largest), BUCKET_MB)
    host, steps = facts.trace.host, len(facts.windows)
    updates = facts.joined.host_names(is_optimizer).astype(bool) & (host.kind == Kind.ANNOTATION)
    fetched = facts.joined.fetch & (host.thread == facts.steps.thread)
    one_batch = all(int((rows & facts.in_step).sum()) == steps for rows in (updates, fetched))
    return Remedy("accumulate", 1, ACCUMULATED) if one_batch and facts.steps.per_step else None
