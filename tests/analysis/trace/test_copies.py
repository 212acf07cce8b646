"""Copies, busy time of streams, queue depth and launches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from profiler.analysis.trace import steps
from profiler.analysis.trace.device.copies import copies
from profiler.analysis.trace.device.launches import Launches, launches
from profiler.analysis.trace.device.overlap import devices
from profiler.analysis.trace.device.queue import depths
from profiler.analysis.trace.device.streams import previous_in_stream, told_to_wait
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import NONE
from tests.analysis.trace.build import D, H
from tests.analysis.trace.build import trace as built
from tests.analysis.trace.test_partition_random import rows
from tests.reference import expected, needs_reference, trace
from tests.traces import Timeline

H2D, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"
D2H = "Memcpy DtoH (Device -> Pageable)"


def test_copies_by_kind_with_rates() -> None:
    made = (Timeline().memcpy(H2D, 0, 1000, 1, bytes=10_000).memcpy(H2D, 2000, 5000, 2, bytes="6000")
            .memcpy(PINNED, 6000, 6500, 3).memset(7000, 7100, 4, bytes=100)
            .memcpy(D2H, 8000, 8000, 5, bytes=4).kernel("gemm", 500, 2500, 6, stream=20))
    found = {c.kind: c for c in copies(Joined(made.trace()))}
    assert list(found) == ["h2d_pageable", "h2d_pinned", "memset", "d2h_pageable"]
    one = found["h2d_pageable"]
    assert (one.count, one.bytes, one.total_ns, one.mean_ns, one.min_ns, one.max_ns) == \
        (2, 16_000, 4000, 2000.0, 1000, 3000)
    assert (one.rate, one.median_rate, one.overlapped_ns) == (4.0, 6.0, 1000)
    assert (found["h2d_pinned"].bytes, found["h2d_pinned"].rate) == (None, None)
    assert (found["d2h_pageable"].bytes, found["d2h_pageable"].rate) == (4, None)  # no length: no rate


@needs_reference
@pytest.mark.parametrize("name", ["v100_resnet50_workers0", "h100_owlv2", "rtx2080ti_resnet",
                                  "diff_test_v100", "a100_nccl_rank0of2"])
def test_copies_agree_with_an_independent_script(name: str) -> None:
    kinds = {H2D: "h2d_pageable", PINNED: "h2d_pinned", D2H: "d2h_pageable",
             "Memcpy DtoH (Device -> Pinned)": "d2h_pinned", "Memcpy DtoD (Device -> Device)": "d2d"}
    found = {c.kind: c for c in copies(Joined(trace(f"{name}.json.gz")))}
    theirs = expected()[f"{name}.json.gz"]["reference"]["memcpy_by_name"]
    assert {kinds[n] for n in theirs} == set(found) - {"memset"}
    for text, row in theirs.items():
        ours = found[kinds[text]]
        assert (ours.count, ours.bytes) == (row["count"], row["bytes"])
        assert ours.total_ns / 1000 == pytest.approx(row["total_us"], abs=0.01)
        assert ours.rate == pytest.approx(row["GBps"], abs=6e-4 if row["GBps"] < 1 else 6e-3)


def test_sums_unions_and_what_runs_beside_what() -> None:
    made = (Timeline().kernel("a", 0, 100, 1).kernel("b", 50, 150, 2, stream=8).kernel("c", 140, 160, 3)
            .kernel("ncclDevKernel_AllReduce", 100, 300, 4, stream=20).memcpy(PINNED, 120, 260, 5, stream=9)
            .memset(400, 410, 6).kernel("elsewhere", 0, 50, 7, device=1))
    first, second = devices(Joined(made.trace()))
    assert (first.kernel_sum_ns, first.kernel_union_ns, first.compute_ns, first.communication_ns) == \
        (420, 300, 160, 200)
    assert (first.copy_ns, first.memset_ns, first.busy_ns) == (140, 10, 310)
    assert first.copy_under_compute_ns == 40
    assert first.communication_under_compute_ns == 60
    assert first.copy_under_communication_ns == 140
    assert [(s.stream, s.activities, s.kernel_sum_ns, s.busy_ns) for s in first.streams] == \
        [(20, 1, 200, 200), (9, 1, 0, 140), (7, 3, 120, 130), (8, 1, 100, 100)]
    assert (second.device, second.busy_ns) == (1, 50)
    part = devices(Joined(made.trace()), np.array([[50, 100], [140, 145]]))[0]
    assert (part.kernel_sum_ns, part.kernel_union_ns, part.busy_ns) == (115, 55, 55)


@needs_reference
@pytest.mark.parametrize("name", ["v100_resnet50_workers0", "h100_owlv2", "a100_nccl_rank0of2",
                                  "diff_test_v100"])
def test_busy_times_agree_with_an_independent_script(name: str) -> None:
    [ours] = devices(Joined(trace(f"{name}.json.gz")))
    theirs = expected()[f"{name}.json.gz"]["reference"]["device_totals_us"]
    for key, value in {"kernel_sum": ours.kernel_sum_ns, "kernel_union": ours.kernel_union_ns,
                       "compute_kernel_union": ours.compute_ns, "comm_kernel_union": ours.communication_ns,
                       "comm_overlapped_with_compute": ours.communication_under_compute_ns,
                       "memcpy_union": ours.copy_ns, "memset_union": ours.memset_ns,
                       "gpu_busy_union(kernel+memcpy+memset)": ours.busy_ns}.items():
        assert value / 1000 == pytest.approx(theirs[key], abs=0.002), key


def queued() -> Timeline:
    """Three launches within 30 ns, the device starts at 100; one kernel begins before its launch."""
    made = Timeline()
    for i in range(3):
        made.call("cudaLaunchKernel", 10 * i, 10 * i + 5, i + 1)
        made.kernel("k", 100 + 50 * i, 150 + 50 * i, i + 1)
    return made.call("cudaLaunchKernel", 400, 410, 9).kernel("k", 390, 420, 9).kernel("orphan", 500, 510, 77)


def test_queue_depth_over_time() -> None:
    every, one = depths(Joined(queued().trace()), (0, 400))
    assert every.stream is None and one.stream == 7
    assert every.time.tolist() == [0, 10, 20, 100, 150, 200]
    assert every.depth.tolist() == [1, 2, 3, 2, 1, 0]
    assert every.max == 3
    assert every.mean == (100 + 140 + 180) / 400
    later, _ = depths(Joined(queued().trace()), (120, 160))
    assert (later.time.tolist(), later.depth.tolist(), later.max) == ([120, 150, 160], [2, 1, 0], 2)
    assert later.mean == (30 + 40) / 40


def test_queue_depth_is_of_the_windows_alone() -> None:
    """What goes on between two profiler windows dilutes nothing."""
    every, _ = depths(Joined(queued().trace()), np.array([[0, 10], [150, 160], [300, 400]]))
    assert every.mean == (10 * 1 + 10 * 1) / 120
    assert every.max == 1
    assert every.depth.max() == 3


def test_an_empty_window_has_no_mean_depth() -> None:
    assert [d.mean for d in depths(Joined(queued().trace()), (50, 50))] == [None, None]


@settings(max_examples=60)
@given(rows())
def test_queue_depth_is_what_counting_gives(found: list[H | D]) -> None:
    j = Joined(built(found))
    for d in depths(j):
        if d.stream is not None:
            continue
        own = np.flatnonzero((j.trace.device.device == d.device) & (j.launch >= 0))
        begin, end = j.trace.host.start[j.launch[own]], j.trace.device.start[own]
        for t, depth in zip(d.time.tolist(), d.depth.tolist(), strict=True):
            assert depth == int(((begin <= t) & (t < end)).sum())


@needs_reference
@pytest.mark.parametrize("name", ["h100_owlv2", "h100_bert_small", "a100_nccl_rank0of2",
                                  "v100_resnet50_workers0", "h100_timesformer", "gpu_user_annotation"])
def test_deepest_queue_agrees_with_hta(name: str) -> None:
    """Within two: it leaves the last step out where there are several, and rounds times to us."""
    ours = {d.stream: d.max for d in depths(Joined(trace(f"{name}.json.gz")))}
    for row in expected()[f"{name}.json.gz"]["hta_0.6.1"]["queue_length_summary"]:
        assert abs(ours[row["stream"]] - row["queue_length_max"]) <= 2


def of(made: Timeline) -> Launches:
    j = Joined(made.trace())
    return launches(j, steps.find(j))


def test_launch_statistics() -> None:
    found = of(queued())
    assert (found.calls, found.graphs, found.unlaunched, found.negative) == (4, 0, 1, 1)
    assert found.without_activity == 0
    assert found.cost is not None and (found.cost.median, found.cost.high, found.cost_ns) == (5.0, 10, 25)
    assert found.delay is not None and (found.delay.low, found.delay.high) == (100, 180)
    assert found.latency is not None and found.latency.high == 100  # the others found the stream busy
    assert (found.short_kernels, found.single_kernels) == (0, 4)
    assert found.per_step.tolist() == []


def test_latency_is_of_streams_with_nothing_else_to_do() -> None:
    made = (Timeline().call("cudaLaunchKernel", 0, 5, 1).kernel("k", 8, 100, 1)
            .call("cudaLaunchKernel", 20, 25, 2).kernel("k", 101, 200, 2)
            .call("cudaLaunchKernel", 300, 305, 3).kernel("k", 306, 307, 3)
            .call("cudaStreamWaitEvent", 400, 402, 4)
            .call("cudaLaunchKernel", 410, 415, 5).kernel("k", 900, 950, 5))
    found = of(made)
    assert found.latency is not None and (found.latency.low, found.latency.high) == (6, 8)
    assert found.delay is not None and found.delay.high == 490
    assert found.short_kernels == 1  # 1 ns of work for 5 ns of launching


def test_launches_of_each_step_and_what_held_calls_up() -> None:
    made, correlation = Timeline(), 0
    for number in range(3):
        t = number * 300_000
        made.step(number, t, t + 290_000)
        for i in range(3 + number):
            t, correlation = t + 2000, correlation + 1
            length = 90_000 if (number, i) == (2, 4) else 1000
            made.call("cudaLaunchKernel", t, t + length, correlation)
            made.kernel("k", t + 100_000, t + 101_000, correlation)
        t, correlation = t + 100_000, correlation + 1
        made.call("cudaGraphLaunch", t, t + 1000, correlation)
        made.kernel("g", t + 2000, t + 3000, correlation).kernel("g", t + 3001, t + 4000, correlation)
    found = of(made)
    assert found.per_step.tolist() == [4, 5, 6]
    assert found.kernels_per_step.tolist() == [5, 6, 7]
    assert (found.graphs, found.single_kernels) == (3, 12)
    assert (found.held_up, found.held_up_ns) == (1, 89_000)


def test_launches_without_kernels_are_counted() -> None:
    made = Timeline().call("cudaLaunchKernel", 0, 5, 1).call("cudaLaunchKernel", 10, 15, 2)
    found = of(made.kernel("k", 20, 30, 2))
    assert (found.calls, found.without_activity) == (2, 1)


def test_a_cpu_trace_has_no_launches() -> None:
    found = of(Timeline().op("aten::mm", 0, 10))
    assert (found.calls, found.cost, found.delay, found.short_kernels) == (0, None, None, 0)


@needs_reference
@pytest.mark.parametrize("name", ["v100_resnet50_workers0", "v100_resnet50_profiler_api_workers0",
                                  "h100_owlv2", "a100_nccl_rank0of2", "v100_ddp_rank1of2"])
def test_delays_agree_with_an_independent_script(name: str) -> None:
    j = Joined(trace(f"{name}.json.gz"))
    found = launches(j, steps.find(j))
    theirs = expected()[f"{name}.json.gz"]["reference"]["launch"]
    assert len(j.launch) - found.unlaunched == theirs["gpu_events_with_launch"]
    assert found.unlaunched == theirs["gpu_events_without_launch"]
    assert found.negative == theirs["negative_latency_events"]
    assert found.delay is not None
    middle = theirs["latency_start_to_start_us_p50_p90_p99"][0]
    assert found.delay.median / 1000 == pytest.approx(middle, abs=6e-4)


@settings(max_examples=60)
@given(rows())
def test_what_came_before_on_a_stream(found: list[H | D]) -> None:
    j = Joined(built(found))
    device = j.trace.device
    for row, before in enumerate(previous_in_stream(j).tolist()):
        same = [r for r in range(row) if device.stream[r] == device.stream[row]
                and device.device[r] == device.device[row]]
        assert (before != NONE) == bool(same)
        if same:
            assert device.end[before] == max(device.end[r] for r in same)
            assert before < row


def test_a_stream_is_told_to_wait_by_rows_of_its_own() -> None:
    made = Timeline()
    for i, stream in enumerate([7, 20, 7, 20]):
        made.call("cudaLaunchKernel", 100 * i, 100 * i + 5, i + 1)
        made.kernel("k", 100 * i + 8, 100 * i + 50, i + 1, stream)
    made.call("cudaStreamWaitEvent", 150, 155, 50)
    assert told_to_wait(Joined(made.trace())).tolist() == [False, False, True, True]  # by any, without rows
    made.sync_row("Stream Wait Event", 150, 155, 50, stream=20, wait_stream=7)
    assert told_to_wait(Joined(made.trace())).tolist() == [False, False, False, True]
