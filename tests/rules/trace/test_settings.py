"""Settings that findings advise, each where the trace shows that it fits, and the lines that they name."""

import numpy as np
import pytest

from profiler.rules.base import Finding, Prediction, Remedy, order, rules
from profiler.rules.trace.evidence import line_at
from profiler.rules.trace.facts import TraceFacts
from tests.reference import needs_reference, traces
from tests.rules.trace.loops import US, loop, without_device
from tests.traces import Timeline

RULES = {rule.name: rule for rule in rules("profiler.rules.trace")}
SMALL = {"kernels": 68, "kernel_us": 1, "first_us": 60}  # bound by launches


def finding(line, rule="launch_bound", what_if=False):
    [found] = RULES[rule].check(TraceFacts(line.trace(), what_if)).findings
    return found


def steps_of(line):
    return sorted((e["t0"], e["t1"]) for e in line.events if e["name"].startswith("ProfilerStep"))


def test_graphs_where_every_step_launches_the_same():
    assert finding(loop(**SMALL)).remedy == Remedy("cuda_graphs", False, True)


def test_compilation_where_steps_differ_or_communicate():
    line = loop(**SMALL)
    call = next(e for e in reversed(line.events) if e["name"] == "cudaLaunchKernel")
    line.events.remove(call)
    assert finding(line).remedy == Remedy("compile", "off", "default")
    line = loop(**SMALL)
    for begin, _ in steps_of(line):
        line.call("cudaLaunchKernel", begin, begin + 500, 9000 + begin)
        line.kernel("ncclDevKernel_AllReduce_Sum_f32", begin + 600, begin + 700, 9000 + begin, stream=9)
    assert finding(line).remedy == Remedy("compile", "off", "default")


def test_neither_where_it_is_in_use():
    line = loop(**SMALL)
    for event in line.events:
        event["name"] = event["name"].replace("cudaLaunchKernel", "cudaGraphLaunch")
    assert finding(line).remedy is None and finding(line).advice
    line = loop(**SMALL)
    call = next(e for e in reversed(line.events) if e["name"] == "cudaLaunchKernel")
    line.events.remove(call)
    line.annotation("Torch-Compiled Region: 0/0", call["t0"] - 10, call["t0"] - 5)
    assert finding(line).remedy is None


@pytest.mark.parametrize(("name", "kind", "share", "remedy"), [
    ("relu", "Adam", 0.8, Remedy("optimizer", "per-parameter", "fused")),
    ("_foreach_addcmul_", "AdamW", 0.8, Remedy("optimizer", "foreach", "fused")),
    ("_fused_adam_", "Adam", 0.8, Remedy("cuda_graphs", False, True)),
    ("relu", "LBFGS", 0.8, Remedy("cuda_graphs", False, True)),
    ("relu", "Adam", 0.3, Remedy("cuda_graphs", False, True))])
def test_a_fused_optimizer_where_most_launches_are_its(name, kind, share, remedy):
    line = loop(**SMALL, name=name)
    for begin, end in steps_of(line):
        line.annotation(f"Optimizer.step#{kind}.step", round(end - share * (end - begin)), end - US)
    assert finding(line).remedy == remedy


def test_a_setting_that_takes_a_part_away_ranks_as_advice_does():
    def one(rule, scenario, speedup, remedy=True):
        return Finding(rule, "", "warning", remedy=Remedy("x", 0, 1) if remedy else None,
                       prediction=Prediction(scenario, speedup, 1.0, speedup, True))

    found = [one("launch", "no_launch_overhead", 1.6), one("input", "no_input_wait", 1.4),
             one("host", "no_host_work", 1.5, remedy=False)]
    assert [f.rule for f in sorted(found, key=order)] == ["input", "launch", "host"]


def waiting(operator=None, copy=None):
    """Steps that end in a wait of the host: inside an operator, or after a copy."""
    line, correlation = Timeline(), 0
    for k in range(6):
        at = k * 1000 * US
        correlation += 1
        line.call("cudaLaunchKernel", at + 10 * US, at + 20 * US, correlation)
        line.kernel("gemm", at + 20 * US, at + 500 * US, correlation)
        if operator:
            line.op(operator, at + 300 * US, at + 520 * US)
        if copy:
            correlation += 1
            line.call("cudaMemcpyAsync", at + 302 * US, at + 310 * US, correlation)
            line.memcpy(copy, at + 500 * US, at + 501 * US, correlation)
        correlation += 1
        line.call("cudaStreamSynchronize", at + 311 * US, at + 515 * US, correlation)
        line.step(k, at, at + 1000 * US)
        line.python("train.py(30): step", at + 300 * US, at + 530 * US)
    return line


@pytest.mark.parametrize(("operator", "copy", "remedy", "said"), [
    ("aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pageable)", None, "Read scalars"),
    ("aten::copy_", "Memcpy DtoH (Device -> Pageable)", Remedy("non_blocking", False, True), "pinned memory"),
    ("aten::nonzero", None, None, "depends on values"),
    (None, None, None, "torch.cuda.synchronize()")])
def test_what_is_waited_for_decides_what_can_be_tried(operator, copy, remedy, said):
    found = finding(waiting(operator, copy), "sync_bound", what_if=True)
    assert found.remedy == remedy and said in found.advice and found.site == "train.py:30"
    told = {e.text: e.value for e in found.evidence if e.text.startswith("Host waits ")}
    assert len(told) == 1 and next(iter(told.values())) == pytest.approx(0.204, abs=0.01)


def test_waiting_for_a_pageable_batch_is_no_synchronisation():
    line = waiting("aten::copy_", "Memcpy HtoD (Pageable -> Device)")
    told = RULES["sync_bound"].check(TraceFacts(line.trace(), False))
    assert not any(e.text.startswith("Host waits") for f in told.findings for e in f.evidence)


def reducing(size, ddp=True, collective="allreduce", updates=1):
    """Steps of 1 ms with a backward of 300 us and one reduction after it, of so many bytes."""
    line, correlation = Timeline(rank=0, world_size=2), 0
    for k in range(6):
        at = k * 1000 * US
        line.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + US, at + 2 * US)
        if ddp:
            line.annotation("DistributedDataParallel.forward", at + 3 * US, at + 8 * US)
        kernels = ("gemm", 20, 500), ("ncclDevKernel_AllReduce_Sum_f32", 500, 960)
        for n, (name, begin, end) in enumerate(kernels):
            correlation += 1
            line.call("cudaLaunchKernel", at + (10 + 5 * n) * US, at + (13 + 5 * n) * US, correlation)
            extra = {"Collective name": collective, "In msg nelems": size // 4, "Out msg nelems": size // 4,
                     "dtype": "Float", "Group size": 2} if n else {}
            line.kernel(name, at + begin * US, at + end * US, correlation, stream=7 + n, **extra)
        for n in range(updates):
            line.annotation("Optimizer.step#SGD.step", at + (970 + 4 * n) * US, at + (972 + 4 * n) * US)
        correlation += 1
        line.call("cudaDeviceSynchronize", at + 25 * US, at + 965 * US, correlation)
        line.step(k, at, at + 1000 * US)
    return line


@pytest.mark.parametrize(("planned", "remedy"), [
    ({"size": 8 << 20}, Remedy("accumulate", 1, 4)),
    ({"size": 8 << 20, "updates": 2}, None), ({"size": 8 << 20, "ddp": False}, None),
    ({"size": 8 << 20, "collective": "alltoall"}, None)])
def test_of_data_parallel_gradients_fewer_reductions(planned, remedy):
    assert finding(reducing(**planned), "communication_bound").remedy == remedy


def test_large_buckets_that_could_travel_during_backward_are_made_smaller():
    from profiler.rules.trace.settings import against_communication

    facts = TraceFacts(reducing(200 << 20).trace(), False)
    assert against_communication(facts, True) == Remedy("bucket_cap_mb", 200, 25)
    assert against_communication(facts, False) == Remedy("accumulate", 1, 4)
    small = TraceFacts(reducing(8 << 20).trace(), False)
    assert against_communication(small, True) == Remedy("accumulate", 1, 4)


def test_the_line_of_work_around_the_launches():
    line = loop(kernels=3, kernel_us=5)
    begins = steps_of(line)
    stretched = Timeline()
    for k, (begin, end) in enumerate(begins):
        shift = 300 * US * k
        for event in line.events:
            if begin <= event["t0"] < end or event["name"].endswith("#" + str(10 + k)):
                stretched.events.append({**event, "t0": event["t0"] + shift, "t1": event["t1"] + shift
                                         + (300 * US if event["name"].startswith("ProfilerStep") else 0)})
        stretched.python("train.py(5): main", begin + shift, end + shift + 300 * US)
        stretched.python("train.py(70): log_images", end + shift, end + shift + 290 * US)
    found = finding(stretched, "host_bound")
    assert found.site == "train.py:70"


def test_the_line_of_work_on_the_cpu():
    line = without_device(loop(kernels=2))
    for begin, end in steps_of(line):
        line.python("train.py(5): main", begin, end).python("train.py(9): clean", end - 25 * US, end)
    found = finding(line, "host_bound")
    assert found.site == "train.py:9"


def test_a_line_is_where_the_time_goes_not_where_the_function_is_longest():
    line = Timeline().python("a.py(1): f", 0, 100 * US).python("a.py(2): g", 10 * US, 30 * US)
    line.python("torch/nn/modules/module.py(1): _call_impl", 12 * US, 30 * US)
    line.python("transformers/models/bert.py(1): forward", 13 * US, 30 * US)
    facts = TraceFacts(line.op("aten::mm", 95 * US, 96 * US).trace(), False)
    assert line_at(facts, np.array([[12, 28], [50, 60]]) * US) == "a.py:2"
    assert line_at(facts, np.array([[14, 20], [50, 60]]) * US) == "a.py:1"
    assert line_at(facts, np.array([[200, 300]]) * US) is None


@needs_reference
def test_pageable_copies_of_a_real_trace_tell_bytes_and_rate():
    [found] = RULES["transfer_bound"].check(TraceFacts(traces("rtx2080ti_resnet.json.gz")[0])).findings
    told = {e.text: (e.value, e.unit) for e in found.evidence}
    assert found.remedy == Remedy("pin_memory", False, True)
    [(size, unit)] = [v for text, v in told.items() if text.startswith("Pageable copies to the device, in")]
    assert unit == "B" and size == pytest.approx(2.31e9 * 28 / 30, rel=0.01)  # of 30 batches
    assert told["Pageable copies to the device, rate"] == (pytest.approx(3.7e9, rel=0.02), "B/s")


def test_pinned_copies_can_go_one_batch_ahead():
    line, correlation = Timeline(), 0
    for k in range(6):
        at = k * 1000 * US
        for n, (name, begin, end) in enumerate((("copy", 20, 420), ("gemm", 420, 960))):
            correlation += 1
            call = "cudaLaunchKernel" if n else "cudaMemcpyAsync"
            line.call(call, at + (10 + 5 * n) * US, at + (13 + 5 * n) * US, correlation)
            if n:
                line.kernel(name, at + begin * US, at + end * US, correlation)
            else:
                line.op("aten::copy_", at + 9 * US, at + 14 * US)
                line.memcpy("Memcpy HtoD (Pinned -> Device)", at + begin * US, at + end * US, correlation,
                            bytes=4_000_000)
        correlation += 1
        line.call("cudaDeviceSynchronize", at + 25 * US, at + 965 * US, correlation)
        line.step(k, at, at + 1000 * US)
    found = finding(line, "transfer_bound", what_if=True)
    assert found.remedy == Remedy("prefetch_to_device", False, True)
    assert found.prediction.scenario == "overlapped_transfer" and found.prediction.speedup > 1.3
    assert finding(line, "transfer_bound").remedy is None  # nothing was predicted
