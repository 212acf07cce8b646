"""What a trace tells of the GPU itself: copies, reads that cost nothing, filling, bandwidth, tensor cores."""

import pytest

from profiler.rules.trace import memory_bandwidth, occupancy, sync_bound, tensor_cores, transfer_bound
from profiler.rules.trace.facts import TraceFacts
from tests.reference import needs_reference, traces, truth
from tests.rules.trace.loops import US, loop
from tests.traces import Timeline

HARMLESS = "compute_bound with .item()"


def evidence(found, text):
    return next(e.value for e in found.evidence if e.text.startswith(text))


@needs_reference
@pytest.mark.parametrize("file", sorted(f for f, row in truth().items() if row["kind"] == HARMLESS))
def test_an_item_of_a_loop_that_the_device_bounds_is_not_blamed(file):
    facts = TraceFacts(traces(file)[0])
    outcome = sync_bound.check(facts)
    assert outcome.ruled_out and not outcome.findings
    assert facts.decision.verdict == "compute_bound"


def test_the_same_item_after_which_the_device_idles_is():
    """Each step reads a scalar after each of its kernels: the device has nothing to do meanwhile."""
    line, correlation, at = Timeline(), 0, 0
    for k in range(6):
        begin = at
        for _ in range(10):
            correlation += 2
            line.op("aten::relu", at, at + 12 * US)
            line.call("cudaLaunchKernel", at + 2 * US, at + 10 * US, correlation)
            line.kernel("relu", at + 12 * US, at + 32 * US, correlation)
            line.op("aten::item", at + 14 * US, at + 60 * US)
            line.call("cudaStreamSynchronize", at + 16 * US, at + 58 * US, correlation + 1)
            at += 62 * US
        line.step(10 + k, begin, at)
    [found] = sync_bound.check(TraceFacts(line.trace())).findings
    assert "scalars" in found.advice and found.prediction.high > 1.2


def test_one_item_a_step_behind_long_kernels_is_not_blamed():
    """The host waits 2.9 of 3.0 ms in it, and loses nothing: the device has work all the time."""
    line, correlation, at = Timeline(), 0, 0
    for k in range(6):
        begin = at
        for n in range(10):
            correlation += 1
            line.call("cudaLaunchKernel", begin + 12 * n * US, begin + (12 * n + 8) * US, correlation)
            line.kernel("mm", begin + (10 + 300 * n) * US, begin + (310 + 300 * n) * US, correlation)
        correlation, at = correlation + 1, begin + 3014 * US
        line.op("aten::item", begin + 125 * US, begin + 3013 * US)
        line.call("cudaStreamSynchronize", begin + 127 * US, begin + 3012 * US, correlation)
        line.step(10 + k, begin, at)
    facts = TraceFacts(line.trace())
    outcome = sync_bound.check(facts)
    assert outcome.ruled_out and not outcome.findings
    assert facts.decision.verdict == "compute_bound"


def copying(size, count, hidden=False):
    """Steps of a kernel of 100 us, with pinned copies that take 10 us each, beside it or after it."""
    line, correlation, at = Timeline(), 0, 0
    for k in range(6):
        begin, correlation = at, correlation + 1
        line.call("cudaLaunchKernel", at, at + 5 * US, correlation)
        line.kernel("mm", at + 6 * US, at + 106 * US, correlation)
        first = at + (6 if hidden else 106) * US
        for n in range(count):
            correlation += 1
            line.call("cudaMemcpyAsync", at + (6 + n) * US, at + (6 + n) * US + 500, correlation)
            line.memcpy("Memcpy HtoD (Pinned -> Device)", first + 10 * n * US, first + 10 * (n + 1) * US,
                        correlation, stream=8 if hidden else 7, bytes=size)
        at = max(first + 10 * count * US, at + 106 * US) + 2 * US
        line.call("cudaDeviceSynchronize", begin + 90 * US, at, correlation + 1)
        correlation += 1
        line.step(10 + k, begin, at)
    return TraceFacts(line.trace())


def test_small_copies_are_told_from_large_ones():
    [crumbs] = transfer_bound.check(copying(4096, 20)).findings
    assert crumbs.title == "Many small copies" and "Join" in crumbs.advice and crumbs.remedy is None
    assert evidence(crumbs, "Copies to the device per step") == 20
    assert evidence(crumbs, "Of their time beside compute") == 0
    [large] = transfer_bound.check(copying(1 << 20, 20)).findings
    assert large.title != crumbs.title
    assert transfer_bound.check(copying(4096, 8, hidden=True)).ruled_out


def grids(blocks, kernel_us=47, **planned):
    """A loop whose kernels have so many blocks, on a device of 132 multiprocessors."""
    line = loop(kernel_us=kernel_us, **planned)
    line.top["deviceProperties"][0]["numSms"] = 132
    for event in line.events:
        if event["cat"] == "kernel":
            event["args"]["grid"] = [blocks, 1, 1]
    return TraceFacts(line.trace(), what_if=False)


def test_kernels_that_do_not_fill_the_gpu():
    [found] = occupancy.check(grids(33)).findings
    assert found.title == "Kernels reach 25 % of the GPU" and found.severity == "info" and not found.cost_ms
    assert occupancy.check(grids(264)).ruled_out
    assert "compute is" in occupancy.check(grids(33, kernel_us=2)).ruled_out
    assert occupancy.check(TraceFacts(loop(kernel_us=47).trace(), what_if=False)).lacks


@pytest.mark.parametrize(("name", "found"), [("relu", True), ("mm", False)])
def test_operators_that_memory_limits(name, found):
    outcome = memory_bandwidth.check(grids(264, name=name))
    assert bool(outcome.findings) is found and bool(outcome.ruled_out) is not found
    if found:
        assert outcome.findings[0].remedy.to_json() == {"setting": "compile", "from": "off", "to": "default"}
        assert evidence(outcome.findings[0], "Kernels of aten::relu") == pytest.approx(20 * 0.047)


def test_compiled_code_is_not_called_limited_by_memory():
    line = loop(kernel_us=47)
    for event in line.events:
        if event["cat"] == "cpu_op":
            event["name"] = "CompiledFunction"
    assert memory_bandwidth.check(TraceFacts(line.trace(), what_if=False)).ruled_out


@pytest.mark.parametrize(("kind", "remedy"), [("float", True), ("c10::BFloat16", False)])
def test_precision_is_a_remedy_for_float32_alone(kind, remedy):
    line = loop(kernel_us=47, name="mm")
    line.top["deviceProperties"][0]["computeMajor"] = 9
    for event in line.events:
        if event["cat"] == "cpu_op":
            event["args"] |= {"Input Dims": [[64, 64], [64, 64]], "Input type": [kind, kind]}
    [found] = tensor_cores.check(TraceFacts(line.trace(), what_if=False)).findings
    assert (found.remedy is not None) is remedy
    assert not remedy or found.remedy.setting == "matmul_precision"
