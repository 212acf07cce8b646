"""Against what an independent script reports for real traces (expected.json), where its definitions are ours.

Not compared: the launch counts (ours count a driver call inside a runtime call once, and only what
launches kernels), the percentages, and occupancy, which Kineto has wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from profiler.analysis.trace import intervals, steady, steps
from profiler.analysis.trace.breakdown.gaps import idle
from profiler.analysis.trace.device.busy import busy
from profiler.analysis.trace.joined import Joined
from profiler.trace import names
from profiler.trace.model import Flags, Ints, Kind, Trace
from profiler.trace.names import Call
from tests.reference import expected, needs_reference, traces

pytestmark = needs_reference


def cases() -> list[Any]:
    try:
        files = expected()
    except OSError:
        return []
    found = []
    for name, tools in files.items():
        ref = tools["reference"]
        for member, figures in ([("", ref)] if "counts" in ref else sorted(ref.items())):
            found.append(pytest.param(name, member, figures, id=f"{name}:{member}".rstrip(":")))
    return found


def load(name: str, member: str) -> Trace:
    every = traces(name)
    return every[0] if not member else next(t for t in every if t.source.endswith(member))


def slack(trace: Trace) -> int:
    """What rounding may do to one time, ns: nothing to whole microseconds, 250 to a float since the epoch."""
    if trace.resolution_ns == 1000:
        return 0
    return 250 if "float_epoch" in trace.source else 1


class Compared:
    """Figures of the other script and ours, in ns: equal where the file has whole microseconds."""

    def __init__(self, trace: Trace) -> None:
        self.slack = slack(trace)
        self.wrong: list[str] = []

    def same(self, what: str, ours: int, theirs_us: float, parts: int = 1) -> None:
        """`parts`: of how many intervals the figure is made; their errors add up like those of a walk."""
        if abs(ours - theirs_us * 1000) > 2 * self.slack * parts ** 0.5 + 0.5:
            self.wrong.append(f"{what}: {ours / 1000} us, expected {theirs_us}")


@pytest.mark.parametrize(("name", "member", "figures"), cases())
def test_busy_time_of_the_device(name: str, member: str, figures: dict[str, Any]) -> None:
    trace = load(name, member)
    j, found = Joined(trace), Compared(trace)
    device, totals = trace.device, figures.get("device_totals_us")
    if totals is None:
        assert not len(device)
        return
    work = busy(j, j.main_device)
    n = len(device)

    def union(rows: Flags) -> Ints:
        return intervals.union(device.start[rows], device.end[rows])

    every = union(np.ones(n, np.bool_))
    copies, kernels = union(device.kind == Kind.MEMCPY), union(device.kind == Kind.KERNEL)
    h2d = np.isin(j.copy, (int(names.Copy.H2D), int(names.Copy.H2D_PAGEABLE), int(names.Copy.H2D_PINNED)))
    found.same("span", int(device.end.max() - device.start.min()), totals["gpu_span"])
    found.same("busy", intervals.total(every), totals["gpu_busy_union(kernel+memcpy+memset)"], n)
    found.same("compute", intervals.total(work.compute), totals["compute_kernel_union"], n)
    found.same("communication", intervals.total(union(j.communication)), totals["comm_kernel_union"], n)
    found.same("exposed", intervals.total(work.communication),
               totals["comm_exposed(not under compute kernels)"], n)
    found.same("kernels", intervals.total(kernels), totals["kernel_union"], n)
    found.same("copies", intervals.total(copies), totals["memcpy_union"], n)
    found.same("memset", intervals.total(union(device.kind == Kind.MEMSET)), totals["memset_union"], n)
    found.same("h2d", intervals.total(union(h2d)), totals["HtoD_union"], n)
    found.same("h2d exposed", sum(intervals.total(times) for kind, times in work.transfers.items()
                                  if kind.startswith("h2d")), totals["HtoD_exposed(not under any kernel)"], n)
    assert not found.wrong


@pytest.mark.parametrize(("name", "member", "figures"), cases())
def test_idle_gaps_by_who_is_late(name: str, member: str, figures: dict[str, Any]) -> None:
    """Their host_wait: the launch call of the next activity starts after the gap does."""
    trace = load(name, member)
    j, found = Joined(trace), Compared(trace)
    if "device_idle_gaps" not in figures:
        return
    t0, t1 = int(trace.device.start.min()), int(trace.device.end.max())
    start, end, row = idle(j, j.main_device, t0, t1)
    launch = j.launch[row]
    host = (launch >= 0) & (trace.host.start[launch] > start)
    queued = (launch >= 0) & ~host
    theirs = figures["device_idle_gaps"]
    found.same("no launch", int((end - start)[launch < 0].sum()), theirs["no_launch_us"], len(row))
    found.same("launched", int((end - start)[launch >= 0].sum()),
               theirs["host_wait_us"] + theirs["kernel_wait_us"] + theirs["other_us"], len(row))
    # Where rounding decides who was late, either may be said.
    near = (launch >= 0) & (np.abs(trace.host.start[launch] - start) <= found.slack) & (found.slack > 0)
    least, most = int((end - start)[host & ~near].sum()), int((end - start)[host | near].sum())
    assert least - found.slack * len(row) <= theirs["host_wait_us"] * 1000 <= most + found.slack * len(row)
    assert host.sum() - near.sum() <= theirs["host_wait_n"] <= host.sum() + near.sum()
    assert queued.any() == (theirs["kernel_wait_n"] + theirs["other_n"] > 0)
    assert not found.wrong


@pytest.mark.parametrize(("name", "member", "figures"), cases())
def test_steps(name: str, member: str, figures: dict[str, Any]) -> None:
    trace = load(name, member)
    j, found = Joined(trace), Compared(trace)
    s = steps.find(j)
    device, host = trace.device, trace.host
    every = intervals.union(device.start, device.end)
    kernels = intervals.union(*(t[device.kind == Kind.KERNEL] for t in (device.start, device.end)))
    fetch = j.host_names(names.is_loader).astype(bool)
    fetches = intervals.union(host.start[fetch], host.end[fetch])
    sync = j.call == Call.SYNC
    syncs = intervals.union(host.start[sync], host.end[sync])
    step = steady.step_of_activities(j, s)
    theirs = {int(row["step"].split("#")[1]): row for row in figures["steps"]}
    for k, number in enumerate(s.number.tolist()):
        if number not in theirs:
            assert s.rule != steps.PROFILER_STEP
            continue
        row, t0, t1 = theirs[number], s.start[k: k + 1], s.end[k: k + 1]

        def within(times: Ints) -> int:
            return int(intervals.covered(times, t0, t1)[0])  # noqa: B023

        found.same(f"{number} host", int(t1[0] - t0[0]), row["host_dur_us"])
        found.same(f"{number} busy", within(every), row["gpu_busy_in_host_window_us"], len(device))
        found.same(f"{number} kernels", within(kernels), row["kernel_in_window_us"], len(device))
        found.same(f"{number} fetches", within(fetches), row["dataloader_in_window_us"])
        found.same(f"{number} sync", within(syncs), row["sync_in_window_us"], len(host))
        own = step == k
        found.same(f"{number} launched", intervals.total(intervals.union(device.start[own], device.end[own])),
                   row["gpu_time_launched_by_step_us"], len(device))
    assert not found.wrong
