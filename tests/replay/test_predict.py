"""Predictions for loops that are small enough to know the answer."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.joined import Joined
from profiler.replay import Replay, Scenario, predict
from tests.rules.trace.loops import loop
from tests.traces import Timeline

US = 1_000


def replay(line: Timeline, **options: int) -> Replay:
    j = Joined(line.trace())
    found = steps.find(j)
    return predict(j, found, steady.steady(j, found), **options)


def scenario(told: Replay, name: str) -> Scenario:
    [found] = [s for s in told.scenarios if s.name == name]
    return found


def test_a_fetch_without_workers_is_host_work() -> None:
    """400 us of loading beside 422 us of everything else; the fetch keeps 150 us."""
    told = replay(loop(wait_us=400))
    assert told.error == told.unbounded_error == 0
    assert told.speedups()["no_input_wait"] == pytest.approx(822 / (822 - 250))


def test_a_step_of_one_launch() -> None:
    """400 us of loading, one kernel of 400 us, a synchronisation: nothing is between launches."""
    told = replay(loop(wait_us=400, kernels=1, kernel_us=400))
    assert told.speedups()["no_input_wait"] == pytest.approx(822 / (822 - 250))
    assert told.speedups()["no_launch_overhead"] == pytest.approx(1)
    assert told.speedups()["no_sync"] > 1.5


def test_where_nothing_was_queued_the_gap_of_the_device_is_not_known() -> None:
    told = scenario(replay(loop(kernels=68, kernel_us=1)), "no_launch_overhead")
    assert told.low < 1.1 < 4 < told.speedup <= told.high
    assert "not seen" in told.note


def test_where_kernels_queue_the_gap_is_theirs() -> None:
    told = scenario(replay(loop(kernels=68, kernel_us=1, first_us=200)), "no_launch_overhead")
    assert told.high - told.low < 0.1 * told.speedup
    assert not told.note


def workers(waits: list[int], work_us: int = 1_000) -> Timeline:
    """A loop on the host alone but for one kernel: a fetch of `waits` us each step, then work."""
    line, at = Timeline(), 0
    for k, wait in enumerate(waits):
        begin = at
        line.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, at + wait * US)
        at += wait * US
        line.call("cudaLaunchKernel", at, at + 8 * US, k + 1)
        line.kernel("k", at + 10 * US, at + (work_us - 100) * US, k + 1)
        line.call("cudaStreamSynchronize", at + 20 * US, at + work_us * US, 1000 + k)
        at += work_us * US
        line.step(k, begin, at)
    return line


def test_workers_that_are_waited_for_set_the_pace() -> None:
    told = replay(workers([500] * 6))
    assert told.speedups()["compute_half"] == pytest.approx(1, abs=0.01)
    assert told.speedups()["no_input_wait"] == pytest.approx(1500 / 1150)


def test_workers_that_never_held_the_loop_up_set_no_pace() -> None:
    told = scenario(replay(workers([60, 80, 70, 90, 65, 75])), "compute_half")
    assert told.speedup > 1.5
    assert "loader" in told.note


def test_host_costs_are_scaled_to_the_time_without_the_profiler() -> None:
    line = loop(kernels=30, kernel_us=1)
    whole = replay(line)
    told = replay(line, scale_to_ns=round(0.8 * whole.step_ns))
    assert told.step_ns == pytest.approx(0.8 * whole.step_ns, rel=0.01)
    assert told.scale < 0.85
    assert told.measured_ns == whole.measured_ns
    assert told.error == whole.error
    assert not told.notes and whole.notes
    # what launching costs beside the device is less of a smaller step
    assert told.speedups()["no_launch_overhead"] < whole.speedups()["no_launch_overhead"]


def test_host_costs_are_never_raised() -> None:
    assert replay(loop(), scale_to_ns=10**9).scale == 1


def test_at_most_sixteen_steps_are_replayed() -> None:
    told = replay(loop(steps=50, wait_us=400))
    assert told.steps == 16
    assert told.error == 0
    assert told.speedups()["no_input_wait"] == pytest.approx(822 / (822 - 250))


def test_a_budget_is_kept_but_for_one_step() -> None:
    assert 1 <= replay(loop(steps=50), budget=200).steps < 8
    assert replay(loop(steps=50), budget=1).steps == 1


def test_a_trace_without_steps_is_not_replayed() -> None:
    told = replay(Timeline().op("aten::add", 0, 10).call("cudaLaunchKernel", 2, 4, 1).kernel("k", 6, 9, 1))
    assert told.withheld and not told.scenarios and told.error is None


def test_the_interval_holds_the_prediction() -> None:
    for told in (replay(loop(wait_us=300)), replay(workers([500, 700, 300, 500, 600, 400]))):
        for one in told.scenarios:
            assert one.low <= one.speedup <= one.high
            assert one.step_ns == pytest.approx(told.step_ns / one.speedup, abs=1)


def two_streams(records: bool, sync_rows: bool) -> Timeline:
    """Compute on stream 7, reduced on stream 20, used on stream 7, each after the other; 1.5 ms a step."""
    line = Timeline()
    for k in range(6):
        t, c = k * 1_500 * US, 10 * k
        launches = (("compute", 10, 20, 420, 7), ("ncclDevKernel_AllReduce", 40, 421, 1_021, 20),
                    ("optimizer", 70, 1_022, 1_322, 7))
        for n, (name, call, start, end, stream) in enumerate(launches):
            if n:
                if records:
                    line.call("cudaEventRecord", t + (call - 8) * US, t + (call - 7) * US, c + 4 + n)
                line.call("cudaStreamWaitEvent", t + (call - 5) * US, t + (call - 4) * US, c + 6 + n)
                if sync_rows:
                    line.sync_row("Stream Wait Event", t + (call - 5) * US, t + (call - 4) * US, c + 6 + n,
                                  stream, wait_stream=launches[n - 1][4], wait_record=c + 4 + n)
            line.call("cudaLaunchKernel", t + call * US, t + (call + 5) * US, c + 1 + n)
            line.kernel(name, t + start * US, t + end * US, c + 1 + n, stream=stream)
        line.call("cudaDeviceSynchronize", t + 100 * US, t + 1_330 * US, c + 9)
        line.step(k, t, t + 1_490 * US)
    return line


@pytest.mark.parametrize(("records", "sync_rows"), [(True, True), (True, False), (False, False)])
def test_stream_waits_are_bound(records: bool, sync_rows: bool) -> None:
    """Whether rows tell it, or the order of records, or only that of launches."""
    told = replay(two_streams(records, sync_rows))
    assert told.error == pytest.approx(0, abs=1e-4)
    assert told.speedups()["no_communication"] == pytest.approx(1490 / 890, rel=0.01)
    assert told.speedups()["compute_half"] == pytest.approx(1490 / 1140, rel=0.01)


def beside() -> Timeline:
    """A thread of its own copies the next batch, 1 ms, beside the loop's 1.08 ms; compute waits for it."""
    line = Timeline()
    for k in range(8):
        t, c = k * 1_100 * US, 10 * k
        line.call("cudaMemcpyAsync", t + 30 * US, t + 36 * US, c + 1, thread=2)
        line.memcpy("Memcpy HtoD (Pinned -> Device)", t + 40 * US, t + 1_040 * US, c + 1, stream=24)
        line.call("cudaEventRecord", t + 50 * US, t + 51 * US, c + 2, thread=2)
        line.call("cudaStreamWaitEvent", t + 2 * US, t + 3 * US, c + 3)
        line.call("cudaLaunchKernel", t + 5 * US, t + 10 * US, c + 4)
        line.kernel("k", t + 15 * US, t + 415 * US, c + 4)
        line.call("cudaStreamSynchronize", t + 20 * US, t + 420 * US, c + 5)
        line.step(k, t, t + 1_080 * US)
    return line


def test_a_thread_beside_the_loop_takes_none_of_its_time() -> None:
    told = replay(beside())
    assert told.error == 0
    # 200 us less of compute, but a copy takes 1 ms and one follows the other
    assert told.speedups()["compute_half"] == pytest.approx(1080 / 1000, rel=0.005)


def test_a_kernel_that_lost_its_launch_moves_with_its_neighbours() -> None:
    line = loop(kernels=40, kernel_us=5)
    events = [e for e in line.events if e["name"] == "cudaLaunchKernel"]
    for event in events[10::97]:
        line.events.remove(event)
    told = replay(line)
    assert told.error < 0.01
    whole = replay(loop(kernels=40, kernel_us=5)).speedups()["no_launch_overhead"]
    assert told.speedups()["no_launch_overhead"] == pytest.approx(whole, rel=0.05)


def test_work_of_before_the_trace_fills_the_queue() -> None:
    """Thirty kernels of 1 ms were queued; ten launches a step run behind them, 10 ms each."""
    line = Timeline()
    for n in range(30):
        line.kernel("old", n * 1_000 * US, (n + 1) * 1_000 * US, 5_000 + n)
    for k in range(5):
        for n in range(10):
            at, number = (k * 10 + n) * 20 * US, k * 10 + n
            line.call("cudaLaunchKernel", at + 2 * US, at + 8 * US, number + 1)
            line.kernel("new", (30 + number) * 1_000 * US, (31 + number) * 1_000 * US, number + 1)
        line.step(k, k * 200 * US, (k + 1) * 200 * US)
    told = replay(line)
    assert told.step_ns == 10_000 * US
    assert told.speedups()["compute_half"] == pytest.approx(2, rel=0.01)


def allocations(name: str, alike: bool) -> Timeline:
    """A kernel runs at each allocation, which takes 300 us (`alike`) or ends 20 us after the kernel."""
    line, rng = Timeline(), np.random.default_rng(3)
    at = number = 0
    for k in range(6):
        begin = at
        for _ in range(4):
            number += 2
            line.call("cudaLaunchKernel", at, at + 6 * US, number)
            length = int(rng.integers(50, 290)) * US
            line.kernel("k", at + 8 * US, at + 8 * US + length, number)
            end = at + 10 * US + (300 * US if alike else length + 20 * US)
            line.call(name, at + 10 * US, end, number + 1)
            at = end + 2 * US
        line.step(k, begin, at)
    return line


@pytest.mark.parametrize(("name", "alike", "drains"), [
    ("cudaFree", False, True), ("cudaMalloc", True, False), ("cudaMalloc", False, True)])
def test_only_allocator_calls_that_are_seen_to_wait_do(name: str, alike: bool, drains: bool) -> None:
    """Without kernels' time a call that waits is shorter, and one that does not is as long."""
    gain = replay(allocations(name, alike)).speedups()["compute_half"]
    assert (gain > 1.2) == drains
    if not drains:
        assert gain == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("name", "blocks"), [
    (None, False), ("get_loss", False), ("log metrics", False), ("evaluate", False),
    ("save_checkpoint", True)])
def test_only_what_a_checkpoint_reads_still_blocks(name: str | None, blocks: bool) -> None:
    """A scalar is read each step before 200 us of Python; under other annotations it returns at once."""
    line, at, free, number = Timeline(), 0, 0, 0
    for k in range(8):
        begin = at
        for _ in range(20):
            number += 1
            line.call("cudaLaunchKernel", at + 2 * US, at + 10 * US, number)
            start = max(at + 12 * US, free)
            free = start + 40 * US
            line.kernel("relu", start, free, number)
            at += 14 * US
        number += 2
        line.call("cudaMemcpyAsync", at + 2 * US, at + 9 * US, number - 1)
        line.memcpy("Memcpy DtoH (Device -> Pinned)", free + US, free + 3 * US, number - 1)
        free += 3 * US
        line.call("cudaStreamSynchronize", at + 10 * US, free + 6 * US, number)
        if name:
            line.annotation(name, at, free + 30 * US)
        at = free + 230 * US
        line.step(k, begin, at)
    gain = replay(line).speedups()["no_sync"]
    assert gain == pytest.approx(1) if blocks else gain > 1.2


def test_stalls_of_a_few_steps_are_told_beside_the_median() -> None:
    told = replay(workers([20] * 14 + [9_000] * 6 + [20] * 10))
    ready = scenario(told, "no_input_wait")
    assert ready.speedup < 1.1
    assert "by mean steps" in ready.note and dict(ready.also)["mean instead of median steps"] > 2
    assert ready.step_ns == pytest.approx(steps_ns(workers([20] * 30)), rel=0.02)


def steps_ns(line: Timeline) -> int:
    j = Joined(line.trace())
    return steady.steady(j, steps.find(j)).step_ns
