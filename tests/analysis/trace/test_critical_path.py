"""The critical path: it covers its window, and bounds what the removal of a cost can gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.trace import intervals, steady, steps
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.path.critical_path import CriticalPath, Part, critical_path, parts
from profiler.trace.model import NONE, Trace
from tests.analysis.trace.build import D, H
from tests.analysis.trace.build import trace as built
from tests.analysis.trace.test_partition_random import rows
from tests.reference import needs_reference, reference_files, trace, traces, truth
from tests.traces import Timeline


def path(made: Trace) -> CriticalPath:
    j = Joined(made)
    s = steps.find(j)
    return critical_path(j, s, steady.steady(j, s))


def told(found: CriticalPath, made: Trace) -> list[tuple[str, int, int, str]]:
    """Class, start, end, and what was at work, of every segment."""
    def what(i: int) -> str:
        if found.device[i] != NONE:
            return made.names[made.device.name[found.device[i]]]
        return made.names[made.host.name[found.host[i]]] if found.host[i] != NONE else ""
    return [(found.texts[code], t0, t1, what(i)) for i, (code, t0, t1) in enumerate(
        zip(found.code.tolist(), found.start.tolist(), found.end.tolist(), strict=True))]


def test_through_a_synchronisation_to_the_device_and_back_to_the_launch() -> None:
    made = (Timeline().step(1, 0, 1000).op("aten::mm", 100, 200).call("cudaLaunchKernel", 150, 160, 1)
            .kernel("gemm", 170, 600, 1).call("cudaLaunchKernel", 250, 260, 2).kernel("add", 601, 800, 2)
            .call("cudaDeviceSynchronize", 300, 820, 3).op("aten::log", 900, 950)).trace()
    assert told(path(made), made) == [
        ("host", 0, 100, ""), ("host", 100, 160, "aten::mm"), ("queued", 160, 170, "gemm"),
        ("compute", 170, 600, "gemm"), ("queued", 600, 601, "add"), ("compute", 601, 800, "add"),
        ("sync", 800, 820, "cudaDeviceSynchronize"), ("host", 820, 900, ""), ("host", 900, 950, "aten::log"),
        ("host", 950, 1000, "")]


def test_what_a_path_consists_of() -> None:
    made = Timeline().step(1, 0, 1000)
    for i, t in enumerate((100, 500)):
        made.call("cudaLaunchKernel", t, t + 10, i + 1).kernel("gemm", t + 20, t + 220, i + 1)
        made.call("cudaStreamSynchronize", t + 50, t + 230, i + 11)
    trace = made.op("aten::log", 800, 900).trace()
    found = path(trace)
    assert parts(found, trace) == (
        Part("host", "", 4, 100 + 170 + 70 + 100), Part("compute", "gemm", 2, 400),
        Part("host", "aten::log", 1, 100), Part("host", "cudaLaunchKernel", 2, 20),
        Part("queued", "gemm", 2, 20), Part("sync", "cudaStreamSynchronize", 2, 20))
    assert parts(found, trace, np.array([[0, 130]]))[0] == Part("host", "", 1, 100)


def test_without_a_wait_the_host_is_the_path() -> None:
    made = (Timeline().step(1, 0, 1000).call("cudaLaunchKernel", 150, 160, 1).kernel("gemm", 170, 600, 1)
            .op("aten::log", 700, 900)).trace()
    assert set(path(made).total_ns()) == {"host"}


def test_a_kernel_that_was_launched_late_leads_to_its_launch() -> None:
    """The second kernel is launched after the first has ended: what the host did between is on the path."""
    made = (Timeline().step(1, 0, 3000).call("cudaLaunchKernel", 100, 110, 1).kernel("a", 120, 200, 1)
            .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 300, 900)
            .call("cudaLaunchKernel", 1000, 1010, 2).kernel("b", 1020, 2000, 2)
            .call("cudaStreamSynchronize", 1100, 2010, 3).op("aten::log", 2100, 2200)).trace()
    assert path(made).total_ns() == {"host": 2000 - 600 - 10 + 10, "compute": 980, "input_wait": 600,
                                     "queued": 10, "sync": 10} | {"host": 100 + 200 + 110 + 990}


def test_a_stream_that_was_told_to_wait_leads_to_the_other_stream() -> None:
    def made(waits: bool) -> Trace:
        found = (Timeline().step(1, 0, 3000)
                 .call("cudaLaunchKernel", 100, 110, 1).kernel("grad", 120, 1000, 1)
                 .call("cudaLaunchKernel", 200, 210, 2)
                 .kernel("ncclDevKernel_AllReduce", 1005, 1900, 2, stream=20)
                 .call("cudaDeviceSynchronize", 300, 1950, 3).op("aten::log", 2000, 2100))
        return (found.call("cudaStreamWaitEvent", 150, 155, 9) if waits else found).trace()

    assert path(made(True)).total_ns()["compute"] == 880
    assert "compute" not in path(made(False)).total_ns()


def test_a_staged_copy_whose_call_has_returned_waits_for_its_stream() -> None:
    """Small ones are staged at once. The device takes longer to begin one than a kernel."""
    made = Timeline().step(1, 0, 200_000)
    for i in range(4):
        made.call("cudaLaunchKernel", 100 + 200 * i, 110 + 200 * i, i + 1)
        made.kernel("gemm", 1000 + 20_000 * i, 20_900 + 20_000 * i, i + 1)
    made.call("cudaMemcpyAsync", 1000, 1020, 9)
    made.memcpy("Memcpy HtoD (Pageable -> Device)", 90_000, 95_000, 9)  # 9.1 us after the last kernel
    found = path(made.call("cudaStreamSynchronize", 1100, 95_100, 10).op("aten::log", 96_000, 97_000).trace())
    assert found.total_ns()["compute"] == 4 * 19_900
    assert found.total_ns()["queued"] < 20_000


def test_the_rows_of_a_synchronisation_tell_its_stream() -> None:
    """The other stream's kernel ends later, within the wait, and is not what was waited for."""
    made = (Timeline().step(1, 0, 2000).call("cudaLaunchKernel", 100, 110, 1).kernel("a", 120, 900, 1)
            .call("cudaLaunchKernel", 200, 210, 2).kernel("b", 220, 950, 2, stream=20)
            .call("cudaStreamSynchronize", 300, 960, 3).op("aten::log", 1000, 1100))
    assert "b" in {what for *_, what in told(path(made.trace()), made.trace())}
    made.sync_row("Stream Sync", 300, 960, 3, stream=7)
    whats = {what for *_, what in told(path(made.trace()), made.trace())}
    assert "a" in whats and "b" not in whats


def test_it_goes_from_one_device_to_another() -> None:
    """Layers on two devices: the second one's stream is told to wait, and both have a stream 7."""
    made = (Timeline().step(1, 0, 3000).call("cudaLaunchKernel", 100, 110, 1).kernel("first", 120, 1000, 1)
            .call("cudaStreamWaitEvent", 150, 155, 9).call("cudaLaunchKernel", 200, 210, 2)
            .kernel("second", 1005, 1900, 2, device=1).call("cudaStreamSynchronize", 300, 1950, 3)
            .sync_row("Stream Sync", 300, 1950, 3, stream=7, device=1).op("aten::log", 2000, 2100))
    assert path(made.trace()).total_ns() == {
        "host": 110 + 1050, "compute": 880 + 895, "sync": 50, "queued": 15}


def test_freeing_memory_waits_for_the_device() -> None:
    def made(call: str) -> Trace:
        return (Timeline().step(1, 0, 2000).call("cudaLaunchKernel", 100, 110, 1).kernel("a", 120, 900, 1)
                .call(call, 300, 1000, 3).op("aten::log", 1100, 1200)).trace()

    assert path(made("cudaFree")).total_ns()["compute"] == 780
    assert "compute" not in path(made("cudaFreeAsync")).total_ns()


def test_backward_is_launched_from_its_own_thread() -> None:
    made = (Timeline().step(1, 0, 3000).op("aten::loss", 100, 300).op("MmBackward0", 400, 900, thread=2)
            .call("cudaLaunchKernel", 500, 510, 1, thread=2).kernel("bw", 520, 1500, 1)
            .call("cudaStreamSynchronize", 1000, 1510, 2).op("aten::log", 1600, 1700)).trace()
    assert told(path(made), made)[:5] == [
        ("host", 0, 100, ""), ("host", 100, 300, "aten::loss"), ("host", 300, 400, ""),
        ("host", 400, 510, "MmBackward0"), ("queued", 510, 520, "bw")]


def test_a_full_queue_holds_the_host_until_the_device_has_gone_on() -> None:
    made, t = Timeline().step(1, 0, 20_000_000), 0
    for i in range(700):  # the host runs ahead: 600 launches wait, then each waits for a kernel to begin
        begun = 50_000 + i * 20_000
        free = 50_000 + (i - 600) * 20_000
        end = max(t + 2000, free if i >= 600 else 0) + 10
        made.call("cudaLaunchKernel", t, end, i + 1).kernel("k", begun, begun + 20_000 - 100, i + 1)
        t = end + (5 if i < 650 else 40_000)
    made.op("aten::log", t, t + 100)
    found = path(made.trace()).total_ns()
    assert found["compute"] > 1_000_000


def test_windows_of_the_device_begin_with_it() -> None:
    """Host windows are short: the device is the slower one, and the path goes through its kernels alone."""
    made = Timeline()
    for n in range(4):
        made.step(n, n * 1000, n * 1000 + 900).call("cudaLaunchKernel", n * 1000 + 10, n * 1000 + 20, n + 1)
        made.kernel("slow", 100 + n * 5000, 5090 + n * 5000, n + 1)
    found = path(made.trace())
    assert found.windows.tolist() == [[5090, 20090]]
    assert found.total_ns() == {"compute": 3 * 4990, "queued": 3 * 10}


def test_profiler_windows_are_walked_one_by_one() -> None:
    """Between them nothing was recorded; the device is the slower one in both."""
    made = Timeline()
    for k, first in enumerate((0, 10)):
        for n in range(4):
            t, at = k * 100_000 + n * 1000, k * 100_000 + n * 5000
            made.step(first + n, t, t + 900).call("cudaLaunchKernel", t + 10, t + 20, first + n + 1)
            made.kernel("slow", at + 100, at + 5090, first + n + 1)
    found = path(made.trace())
    assert found.windows.tolist() == [[5090, 20090], [105090, 120090]]
    assert found.total_ns() == {"compute": 6 * 4990, "queued": 6 * 10}


def covers(found: CriticalPath) -> bool:
    segments = np.stack((found.start, found.end), axis=1)
    return (sum(found.total_ns().values()) == intervals.total(found.windows)
            and (segments[1:, 0] >= segments[:-1, 1]).all()
            and np.array_equal(intervals.union(*segments.T), intervals.union(*found.windows.T)))


@settings(max_examples=60)
@given(rows(), st.booleans())
def test_it_covers_its_window_whatever_the_trace(found: list[H | D], whole: bool) -> None:
    if whole:
        found = [r for r in found if not r.name.startswith("ProfilerStep")]
    assert covers(path(built(found)))


def files() -> list[Any]:
    return [p.name for p in reference_files()] + sorted(truth())


@needs_reference
@pytest.mark.parametrize("name", files())
def test_it_covers_the_window_of_every_real_and_labelled_trace(name: str) -> None:
    assert all(covers(path(one)) for one in traces(name))


# What a scenario removes, as classes of the path, and how much of them.
REMOVED = {"no_input_wait": (("input_wait",), 1.0), "no_allocator": (("allocator",), 1.0),
           "no_communication": (("communication",), 1.0), "compute_half": (("compute",), 0.5)}


@needs_reference
@pytest.mark.parametrize("name", sorted(truth()))
def test_removing_a_cost_gains_no_more_than_its_part_of_the_path(name: str) -> None:
    j = Joined(trace(name))
    s = steps.find(j)
    windows = steady.steady(j, s)
    counted = windows.windows[windows.counted]
    total = critical_path(j, s, windows).total_ns(counted)
    length = int((counted[:, 1] - counted[:, 0]).sum())
    assert sum(total.values()) == length
    for row in truth()[name]["what_if"]:
        if row["scenario"] in REMOVED:
            classes, part = REMOVED[row["scenario"]]
            share = sum(total.get(c, 0) for c in classes) * part / length
            assert 1 - 1 / row["speedup_of_mean"] <= share + 0.03, row["scenario"]
