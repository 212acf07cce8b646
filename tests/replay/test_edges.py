"""Each kind of edge is there for a reason: without it the bounded replay misses the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.joined import Joined
from profiler.replay.build import Columns, Model, columns, model, program
from profiler.replay.fit import fit
from profiler.replay.paces import measured, paces
from profiler.replay.predict import BUDGET
from profiler.replay.run import Op, run
from tests.reference import needs_reference, trace

NEVER = -10**12
pytestmark = needs_reference


def stream_order(m: Model, c: Columns) -> Columns:
    return c.with_(gap=np.full(len(c.gap), NEVER))


def launch_to_activity(m: Model, c: Columns) -> Columns:
    return c.with_(delay=np.where(np.isin(c.kind, (int(Op.LAUNCH), int(Op.FOLLOW))), NEVER, c.delay))


def without(*ops: Op) -> Callable[[Model, Columns], Columns]:
    """Operations of these kinds wait for nothing."""
    return lambda m, c: c.with_(kind=np.where(np.isin(c.kind, ops), int(Op.HOST), c.kind))


def program_order(m: Model, c: Columns) -> Columns:
    return c.with_(before=np.where(c.kind == Op.LAUNCH, 0, c.before))


def thread_hand_over(m: Model, c: Columns) -> Columns:
    """The autograd thread begins with the step, beside the loop's."""
    host = m.events.host[c.event]
    thread = np.where(host >= 0, m.j.trace.host.thread[host], m.steps.thread)
    segment = m.events.segment[c.event]
    before = c.before.copy()
    for k in range(len(m.segments)):
        other = np.flatnonzero((segment == k) & (thread != m.steps.thread))
        earlier = (segment == k) & (np.arange(len(c.kind)) < other[0])
        before[other[0]] -= before[earlier].sum() + c.cost[earlier].sum()
    return c.with_(before=before)


def error(name: str, change: Callable[[Model, Columns], Columns] | None = None, depth: int | None = None,
          drop: Callable[[Model], None] | None = None, bounded: bool = True) -> float:
    """Of the unchanged replay, relative; with the edges that `change` removes, or `drop` before the fit."""
    j = Joined(trace(name))
    found = steps.find(j)
    m = model(j, found, BUDGET)
    if drop:
        drop(m)
    f = fit(m.measured(), bounded)
    c = columns(m, f)
    p = program(m, change(m, c) if change else c, depth or f.depth)
    truth = measured(steady.steady(j, found), m.segments)
    return abs(paces(run(p), m.segments).of(truth) / truth.step - 1)


@pytest.mark.parametrize(("name", "change"), [
    ("trace_007.json.gz", stream_order),
    ("trace_012.json.gz", launch_to_activity),
    ("trace_021.json.gz", without(Op.WAIT)),                # communication on a stream of its own
    ("trace_005.json.gz", without(Op.STREAM, Op.EVENT, Op.DEVICE)),  # scalar reads
    ("trace_011.json.gz", without(Op.EVENT, Op.STREAM)),    # pageable copies
    ("trace_023.json.gz", without(Op.DRAIN)),               # cudaFree
    ("trace_020.json.gz", without(Op.FETCH)),               # loader workers
    ("trace_019.json.gz", program_order),
    ("trace_022.json.gz", thread_hand_over),
], ids=lambda value: getattr(value, "__qualname__", value))
def test_without_an_edge_the_replay_misses(name: str, change: Callable[[Model, Columns], Columns]) -> None:
    whole = error(name)
    assert whole < 0.005
    assert error(name, change) > whole + 0.005


def test_without_the_launch_queue_a_host_runs_away() -> None:
    """The device still sets the pace, but the host's windows would be its launching alone."""
    assert error("trace_000.json.gz") < 0.005
    assert error("trace_000.json.gz", depth=100_000) > 0.2


def drop_waits(m: Model) -> None:
    m.bound.kind[:] = [int(Op.HOST) if kind == Op.WAIT else kind for kind in m.bound.kind]


@pytest.mark.parametrize("name", ["trace_015.json.gz", "trace_017.json.gz", "trace_021.json.gz"])
def test_only_the_bounds_see_that_waits_are_missing(name: str) -> None:
    """Latencies absorb them otherwise: the reason for which the bounded error is the one reported."""
    assert error(name, drop=drop_waits, bounded=False) < 0.001
    assert error(name, drop=drop_waits) > 0.05


def test_a_change_copies_the_program() -> None:
    j = Joined(trace("trace_021.json.gz"))
    m = model(j, steps.find(j), BUDGET)
    c = columns(m, fit(m.measured(), True))
    before = replace(c, kind=c.kind.copy())
    without(Op.WAIT)(m, c)
    assert (c.kind == before.kind).all()
