"""Memory over time, calls to the driver, and what is behind the peak."""

from __future__ import annotations

import ast
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.trace import steps
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.memory.memory import allocator_calls, growth, timelines, usage
from profiler.analysis.trace.memory.memory_peak import Peak, peak
from profiler.analysis.trace.memory.moments import innermost
from profiler.trace.model import NONE
from tests.reference import expected, needs_reference, trace
from tests.traces import Timeline

MB = 1 << 20
US = 1_000


class Allocator:
    """Writes what PyTorch's allocator would: totals after every event, `start` bytes being there before."""

    def __init__(self, timeline: Timeline, start: int = 0) -> None:
        self.timeline, self.total, self.live = timeline, start, dict[int, int]()

    def new(self, t: int, address: int, size: int, thread: int = 1) -> Allocator:
        self.total += size
        self.live[address] = size
        self.timeline.memory(t, size, address, thread, allocated=self.total, reserved=self.total + MB)
        return self

    def free(self, t: int, address: int, thread: int = 1) -> Allocator:
        size = self.live.pop(address)
        self.total -= size
        self.timeline.memory(t, -size, address, thread, allocated=self.total, reserved=self.total + MB)
        return self


def peak_of(timeline: Timeline) -> Peak:
    j = Joined(timeline.trace())
    return peak(j, Owners(j), steps.find(j), timelines(j)[0])


def begun() -> Timeline:
    """Something with a duration from the start, without which a file holds nothing."""
    return Timeline().op("aten::relu", 0, 1)


def test_a_timeline_has_what_the_allocator_says() -> None:
    timeline = begun()
    Allocator(timeline, 5 * MB).new(10, 1, MB).new(20, 2, 3 * MB).free(30, 1)
    [line] = timelines(Joined(timeline.trace()))
    assert (line.name, line.known, line.time.tolist()) == ("CUDA 0", True, [10, 20, 30])
    assert (line.allocated // MB).tolist() == [6, 9, 8] and (line.reserved // MB).tolist() == [7, 10, 9]
    assert line.peak == 1


def test_devices_have_each_a_timeline() -> None:
    timeline = (begun().memory(10, 8, 1, device=-1, device_type=0, allocated=8)
                .memory(20, MB, 2, device=1, allocated=MB, reserved=MB)
                .memory(30, MB, 3, device=0, device_type=6, allocated=MB))
    assert [line.name for line in timelines(Joined(timeline.trace()))] == ["CUDA 1", "HIP 0", "CPU"]


def test_without_totals_the_lowest_point_is_taken_as_nothing() -> None:
    timeline = begun()
    for t, size in ((10, 100), (20, -300), (30, 50)):  # 200 of it were there before
        timeline.memory(t, size, 0, allocated=0, reserved=0)
    for event in timeline.events[1:]:
        for key in ("Total Allocated", "Total Reserved", "Addr"):
            del event["args"][key]
    j = Joined(timeline.trace())
    [line] = timelines(j)
    assert not line.known and line.allocated.tolist() == [300, 0, 50] and (line.reserved == NONE).all()
    found = peak(j, Owners(j), steps.find(j), line)
    assert (found.allocated, found.known, found.reserved, found.live) == (300, False, None, ())
    assert "no addresses" in found.note and found.before is None


def test_growth_is_of_the_lowest_point_of_each_step() -> None:
    timeline = begun()
    allocator = Allocator(timeline)
    for k in range(4):
        allocator.new(k * 100 + 10, 1, 10 * MB).new(k * 100 + 20, 100 + k, 2 * MB).free(k * 100 + 30, 1)
    [line] = timelines(Joined(timeline.trace()))
    windows = np.array([[k * 100, k * 100 + 100] for k in range(4)])
    assert growth(line, windows) == 2 * MB
    assert growth(line, windows[:2]) is None


def test_usage_is_of_the_innermost_operator() -> None:
    timeline = Timeline().op("aten::linear", 0, 100).op("aten::addmm", 20, 80)
    Allocator(timeline).new(10, 1, 8).new(30, 2, 16).free(90, 2).new(200, 3, 1)
    j = Joined(timeline.trace())
    rows = {row.operator: (row.allocations, row.allocated, row.freed) for row in usage(j, Owners(j))}
    assert rows == {"aten::linear": (1, 8, 16), "aten::addmm": (1, 16, 0), "": (1, 1, 0)}


def calls(*names: str, took_us: int = 20, apart_us: int = 1, operators: str = "") -> Timeline:
    """Calls one after the other, each in the operator of its place: "a" or "b", "." for none."""
    timeline, at = Timeline(), 0
    for k, name in enumerate(names):
        timeline.call(name, at, at + took_us * US, 50 + k)
        at += (took_us + apart_us) * US
    begin = 0
    for k, place in enumerate(operators):
        if k + 1 == len(names) or operators[k + 1] != place:
            if place != ".":
                timeline.op(f"aten::{place}", begin * (took_us + apart_us) * US,
                            (k + 1) * (took_us + apart_us) * US - 1)
            begin = k + 1
    return timeline


M, F, SYNC, LAUNCH = "cudaMalloc", "cudaFree", "cudaDeviceSynchronize", "cudaLaunchKernel"


@pytest.mark.parametrize(("timeline", "retries"), [
    (calls(M, F, F, M, operators="aaaa"), 1),
    (calls(M, SYNC, F, F, "cudaStreamIsCapturing", M, operators="aaaaaa"), 1),
    (calls("hipMalloc", "hipFree", "hipMalloc", operators="aaa"), 1),
    (calls(M, F, M, F, M, operators="aaaaa"), 2),
    (calls(F, F, M, operators="..a"), 1),
    (calls(M, M, operators="aa"), 0),
    (calls(F, M, operators="aa"), 0),                            # a library that starts, or cuDNN's search
    (calls(M, F, operators="aa"), 0),
    (calls(M, F, M, operators="abb"), 0),
    (calls(M, LAUNCH, F, M, operators="aaaa"), 0),               # a workspace is exchanged
    (calls(M, F, LAUNCH, M, operators="aaaa"), 0),
    (calls(M, F, M, operators="aaa", took_us=2), 0),             # cudaFree(0)
    (calls("cudaHostAlloc", F, M, M, M, F, operators="aaaaaa"), 0),
    (calls(M, "cudaFreeHost", M, operators="aaa"), 0),
    (calls(F, F, M, operators="..a", apart_us=30), 0),           # empty_cache(), then Python
    (calls(F, F, LAUNCH, M, operators="..ab"), 0),
    (calls(LAUNCH, operators="a"), 0),
])
def test_an_allocation_after_giving_memory_back_is_a_retry(timeline: Timeline, retries: int) -> None:
    j = Joined(timeline.trace())
    found = allocator_calls(j, Owners(j))
    assert found.retries == found.retries_in_steps == retries


def test_calls_of_another_thread_are_none_of_a_retry() -> None:
    timeline = Timeline()
    for thread in (1, 2):
        timeline.op("aten::empty", 0, 100 * US, thread)
    timeline.call(M, 0, 20 * US, 1, 1).call(F, 21 * US, 41 * US, 2, 2).call(M, 42 * US, 62 * US, 3, 1)
    j = Joined(timeline.trace())
    assert allocator_calls(j, Owners(j)).retries == 0


@needs_reference
@pytest.mark.parametrize(("name", "retries"), [
    ("trace_023", 65),                                           # memory given back and asked for again
    ("trace_004", 0),                                            # the cache emptied in every step
    ("a100_alexnet_cuda_sync", 0), ("a100_simple_add", 0), ("a100_cupti_ranges", 0),
    ("rtx2080ti_resnet", 0), ("v100_resnet50_autograd_api_workers4", 0)])
def test_start_and_search_of_libraries_are_no_retries(name: str, retries: int) -> None:
    j = Joined(trace(f"{name}.json.gz"))
    assert allocator_calls(j, Owners(j)).retries == retries


def test_retries_in_windows_are_counted_apart() -> None:
    j = Joined(calls(M, F, M, F, M, operators="aaaaa").trace())
    found = allocator_calls(j, Owners(j), np.array([[0, 60 * US]]))
    assert (found.retries, found.retries_in_steps) == (2, 1)


def test_calls_to_the_driver_are_summed_by_name() -> None:
    j = Joined(calls("cudaMalloc", "cudaFree", "cudaMalloc", "cudaLaunchKernel", apart_us=0).trace())
    found = allocator_calls(j, Owners(j), np.array([[0, 15 * US]]))
    rows = {call.name: (call.count, call.time_ns, call.in_steps, call.in_steps_ns) for call in found.calls}
    assert rows == {"cudaMalloc": (2, 40 * US, 1, 20 * US), "cudaFree": (1, 20 * US, 0, 0)}


def training() -> Timeline:
    """One step of every kind of memory; the peak comes late in backward."""
    return (Timeline().step(1, 0, 10_000)
                .op("aten::to", 100, 300).call("cudaMemcpyAsync", 150, 250, 1)
                .memcpy("Memcpy HtoD (Pageable -> Device)", 160, 240, 1)
                .python("nn.Module: Linear_0", 900, 2100).op("aten::linear", 1000, 2000)
                .op("aten::addmm", 1100, 1900, stack="model.py(7): forward;train.py(3): <module>")
                .op("MulBackward0", 4000, 5000, thread=2, sequence=1, forward_thread=1)
                .op("aten::mul", 4100, 4900, thread=2)
                .annotation("Optimizer.step#Adam.step", 7000, 9000).op("aten::zeros_like", 7100, 7900))


def test_what_is_behind_the_peak() -> None:
    timeline = training()
    allocator = Allocator(timeline, 100 * MB)
    allocator.new(110, 0xA, MB).new(1200, 0xB, 8 * MB).new(1300, 0xC, 2 * MB).free(1400, 0xC)
    allocator.new(4200, 0xD, 32 * MB, thread=2).new(4300, 0xE, 64 * MB, thread=2).free(4500, 0xE, thread=2)
    allocator.free(4800, 0xB, thread=2).new(7200, 0xF, 4 * MB)
    found = peak_of(timeline)
    assert (found.device, found.time_ns, found.allocated // MB) == ("CUDA 0", 4300, 205)
    assert found.before == 100 * MB and found.reserved == 206 * MB
    assert {name: size // MB for name, size in found.categories.items()} == {
        "temporary": 64, "gradient": 32, "activation": 8, "input": 1}
    rows = {row.category: row for row in found.live}
    assert (rows["activation"].operator, rows["activation"].top) == ("aten::addmm", "aten::linear")
    assert rows["activation"].module == "Linear_0"
    assert rows["activation"].stack == "model.py(7): forward;train.py(3): <module>"
    assert sum(row.bytes for row in found.live) + found.before == found.allocated


def test_the_state_of_an_optimizer_outlives_its_step() -> None:
    timeline = training()
    Allocator(timeline).new(7200, 0xF, 4 * MB).new(7300, 0x10, MB).free(7400, 0x10)
    found = peak_of(timeline)
    assert found.categories == {"optimizer state": 4 * MB, "temporary": MB}


def test_without_backward_what_a_later_operator_frees_is_an_activation() -> None:
    timeline = Timeline().op("aten::relu", 0, 100).op("aten::add", 200, 300)
    Allocator(timeline).new(10, 1, MB).new(210, 2, MB).free(250, 1)
    found = peak_of(timeline)
    assert found.categories == {"activation": MB, "unknown": MB}  # nobody saw the end of the second


def test_an_address_that_is_used_again_counts_once() -> None:
    timeline = begun()
    Allocator(timeline).new(10, 1, MB).free(20, 1).new(30, 1, 2 * MB).new(40, 2, MB)
    found = peak_of(timeline)
    assert found.allocated == 3 * MB == sum(row.bytes for row in found.live)


def test_what_an_instant_lies_in() -> None:
    timeline = (Timeline().op("outer", 0, 100).op("inner", 20, 50).op("other", 60, 70, thread=2)
                .op("next", 100, 110))
    j = Joined(timeline.trace())
    names = [j.trace.names[code] for code in j.trace.host.name]
    asked = [(1, 10), (1, 20), (1, 49), (1, 50), (1, 99), (1, 100), (1, 110), (2, 65), (2, 75)]
    lanes = {thread.tid: k for k, thread in enumerate(j.trace.threads)}
    found = innermost(j, np.array([lanes[t] for t, _ in asked], np.int32), np.array([t for _, t in asked]))
    said = [names[row] if row >= 0 else None for row in found]
    assert said == ["outer", "inner", "inner", "outer", "outer", "next", None, "other", None]


def nested(random: Random, t0: int, t1: int, depth: int) -> list[tuple[int, int]]:
    """Events inside [t0, t1), which may touch and never cross."""
    found, t = [], t0
    while t < t1:
        start = random.randint(t, t1 - 1)
        end = random.randint(start + 1, t1)
        found.append((start, end))
        if depth:
            found += nested(random, start, end, depth - 1)
        t = end + random.randint(0, 5)
    return found


@given(st.randoms())
@settings(max_examples=30, deadline=None)
def test_an_instant_lies_in_the_shortest_event_around_it(random: Random) -> None:
    events = nested(random, 0, 60, 2)
    timeline = Timeline()
    for start, end in events:
        timeline.op("aten::relu", start, end)
    timeline.op("aten::relu", 0, 61)
    j = Joined(timeline.trace())
    time = np.arange(70)
    found = innermost(j, np.zeros(len(time), np.int32), time)
    for t, row in zip(time.tolist(), found.tolist(), strict=True):
        around = [end - start for start, end in [*events, (0, 61)] if start <= t < end]
        assert (min(around) if around else None) == \
            (int(j.trace.host.end[row] - j.trace.host.start[row]) if row >= 0 else None)


@needs_reference
@pytest.mark.parametrize("name", ["h100_owlv2.json.gz", "h100_timesformer.json.gz", "h100_bert_small.json.gz",
                                  "v100_ddp_rank1of2.json.gz"])
def test_peaks_agree_with_the_tensorboard_plugin(name: str) -> None:
    said = {ast.literal_eval(key): value for key, value
            in expected()[name]["torch_tb_profiler_0.4.3"]["peak_memory_bytes"].items()}
    found = {(line.name.split()[0], line.device): int(line.allocated.max())
             for line in timelines(Joined(trace(name)))}
    assert found == said


@needs_reference
def test_behind_the_peak_of_owlv2_are_scores_of_attention() -> None:
    """Scores and their softmax, 16 heads of 5185 by 5185 in bfloat16 each; the weights were there before."""
    j = Joined(trace("h100_owlv2.json.gz"))
    found = peak(j, Owners(j), steps.find(j), timelines(j)[0])
    assert {(row.operator, row.module) for row in found.live[:2]} == {
        ("aten::_softmax", "Owlv2Attention_1"), ("aten::bmm", "Owlv2Attention_1")}
    assert all(0 <= row.bytes - 16 * 5185 * 5185 * 2 < 4096 for row in found.live[:2])
    live = sum(row.bytes for row in found.live)
    assert found.before is not None and found.before + live == found.allocated
