"""Against TraceLens, HTA and torch_tb_profiler (expected.json): where we agree, and why not elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from profiler.analysis.trace import intervals, steps
from profiler.analysis.trace.breakdown.partition import partition
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Flags, Ints, Kind, Trace
from tests.analysis.trace.build import D, call, copy, kernel, note, op, step, trace
from tests.reference import expected, needs_reference, traces


def union(t: Trace, rows: Flags) -> Ints:
    return intervals.union(t.device.start[rows], t.device.end[rows])


def reported(tool: str) -> list[Any]:
    try:
        return sorted(n for n, tools in expected().items() if tool in tools and not n.endswith(".tar.gz"))
    except OSError:
        return []


WITH_STEPS = [n for n in reported("hta_0.6.1") if n.startswith(("v100_resnet50", "diff_", "v100_ddp"))]


@needs_reference
@pytest.mark.parametrize("name", reported("tracelens_reference_csv"))
def test_tracelens(name: str) -> None:
    """Agrees to its rounding: it counts memsets as computation, we as transfer."""
    theirs = expected()[name]["tracelens_reference_csv"]
    [given] = traces(name)
    j, device = Joined(given), given.device
    compute = union(given, j.compute | (device.kind == Kind.MEMSET))
    communication = intervals.subtract(union(given, j.communication), compute)
    copies = union(given, device.kind == Kind.MEMCPY)
    copies = intervals.subtract(copies, intervals.either(compute, union(given, j.communication)))
    for key, times in (("computation_time", compute), ("exposed_comm_time", communication),
                       ("exposed_memcpy_time", copies)):
        assert intervals.total(times) / 1e6 == pytest.approx(theirs[key]["ms"], abs=6e-5), key


@needs_reference
@pytest.mark.parametrize("name", WITH_STEPS)
def test_hta_without_the_last_step(name: str) -> None:
    """It drops the last step, and activities whose launch is not in the file; else we find the same."""
    theirs = expected()[name]["hta_0.6.1"]["temporal_breakdown"][0]
    [given] = traces(name)
    j, device = Joined(given), given.device
    s = steps.find(j)
    kept = (j.launch >= 0) & (given.host.start[j.launch] < s.start[-1])
    t0, t1 = int(device.start[kept].min()), int(device.end[kept].max())
    busy, compute = intervals.total(union(given, kept)), intervals.total(union(given, kept & j.compute))
    assert (t1 - t0, compute, t1 - t0 - busy) == pytest.approx(
        [1000 * theirs[key] for key in ("kernel_time(us)", "compute_time(us)", "idle_time(us)")], abs=0.5)
    assert s.number[-1] not in expected()[name]["hta_0.6.1"]["profiler_steps"]


def test_torch_tb_profiler_on_its_own_vector() -> None:
    """test_all_categories: the device's share is the same, host time is not.

    It takes runtime calls before the loader and all operators as one; a gap of ours belongs
    to what the thread did that launched the next activity, and what is submitted is queued.
    """
    rows = [step(1, 50, 450), note("enumerate(DataLoader)#_Iter.__next__", 100, 280),
            op("aten::to", 200, 260), op("nll_loss_backward", 340, 410), call("cudaMemcpyAsync", 360, 380, 1),
            call("cudaMemsetAsync", 390, 400, 2), call("cudaLaunchKernel", 405, 410, 3), copy(405, 415, 1),
            D(Kind.MEMSET, "Memset (Device)", 420, 425, 2), kernel(430, 445, 3)]
    j = Joined(trace(rows))
    p = partition(j, steps.find(j))
    assert {name: n for name, n in zip(p.classes, p.ns[0].tolist(), strict=True) if n} == {
        "compute": 15, "transfer_exposed": 10 + 5, "input_wait": 180, "transfer_host": 20,
        "host": 50 + 80 + 5, "queued": 25 + 5 + 5}
    assert {kind: int(n[0]) for kind, n in p.transfer_by_kind.items()} == {"h2d_pageable": 10, "memset": 5}


def test_our_steps_do_not_stretch_over_what_the_device_still_does() -> None:
    """Their step 1 is [240, 380]: it begins and ends with the device's work. Ours is the annotation's."""
    rows = [step(1, 100, 300), step(2, 350, 500),
            kernel(150, 240, 99), copy(280, 380, 1), kernel(410, 610, 2),
            call("cudaMemcpyAsync", 250, 255, 1), call("cudaLaunchKernel", 400, 405, 2),
            op("aten::to", 200, 260), op("aten::mm", 360, 410)]
    j = Joined(trace(rows))
    s = steps.find(j)
    p = partition(j, s)
    assert np.stack((s.start, s.end), axis=1).tolist() == [[100, 300], [350, 500]]
    assert p.windows.tolist() == [[0, 0], [380, 610]], "the device's steps are longer: its windows count"
