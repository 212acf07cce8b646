"""Rules about the GPU on planned runs: copies, precision, convolutions, memory, shapes, clocks, others."""

import pytest

from profiler.analysis.link import link_rate
from profiler.analysis.readings import FOREIGN
from profiler.rules.recording import (
    compute_bound,
    convolutions,
    other_processes,
    shapes,
    sync_bound,
    tensor_cores,
    transfer_bound,
)
from tests.rules.recording.gpu_runs import (
    BUSY,
    FLOAT32,
    GIB,
    SHAPES,
    STAGES,
    evidence,
    finding,
    gpu_facts,
    memory,
    with_new_shapes,
)
from tests.runs import CPU_STAGES_MS, UUID

COPYING = {"stages": {"data": 1, "h2d": 30, "forward": 20, "backward": 30, "optimizer": 5},
           "device": {"h2d": 28, "forward": 20, "backward": 30, "optimizer": 5}, "lag": {"data": 0.1},
           "gpu": {"gpu.util": 0.6}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.stepscope"


# Copies


def copies(size, count=2):
    """Sums at readings 100 ms apart, of steps of 86 ms."""
    return {"torch.copies": lambda k: round(count * k * 100 / 86),
            "torch.copied": lambda k: round(size * k * 100 / 86)}


def test_pageable_copies_by_what_the_probe_saw(path):
    facts = gpu_facts(path, **COPYING, of_process=copies(100e6), loader={"pin_memory": False},
                      properties={"copies": {"pinned": 0.0, "blocking": 1.0}})
    found = finding(transfer_bound, facts)
    assert found.remedy.to_json() == {"setting": "pin_memory", "from": False, "to": True}
    assert found.prediction.scenario == "no_transfer" and found.prediction.at_most
    assert evidence(found, "Copied per step") == pytest.approx(100e6, rel=0.05)
    assert evidence(found, "Rate of the copies") == pytest.approx(100e6 / 0.028, rel=0.05)
    assert evidence(found, "PCIe 5 x16") == pytest.approx(63e9, rel=0.01)


def test_pinned_batches_that_are_copied_from_other_memory(path):
    facts = gpu_facts(path, **COPYING, loader={"pin_memory": True}, of_process=copies(100e6),
                      properties={"copies": {"pinned": 0.0, "blocking": 0.0}})
    found = finding(transfer_bound, facts)
    assert "though the loader pins" in found.title and found.remedy is None and found.prediction is None


@pytest.mark.parametrize(("size", "title"), [(1.4e9, "as fast as the link"), (100e6, "take time")])
def test_pinned_copies_are_too_much_or_not_hidden(path, size, title):
    settings = {"prefetch_to_device": False, "pin_memory": True}
    facts = gpu_facts(path, **COPYING, loader={"pin_memory": True}, of_process=copies(size),
                      properties={"copies": {"pinned": 1.0, "blocking": 0.0}},
                      meta={"workload": {"name": "speech", "settings": settings}})
    found = finding(transfer_bound, facts)
    assert title in found.title and found.remedy.setting == "prefetch_to_device"
    assert found.prediction.scenario == "overlapped_transfer"
    assert found.prediction.high == pytest.approx(86 / 58, rel=0.01)


def test_crumbs(path):
    facts = gpu_facts(path, **COPYING, loader={"pin_memory": True}, of_process=copies(200 * 4096, 200),
                      properties={"copies": {"pinned": 1.0, "blocking": 0.0}})
    assert finding(transfer_bound, facts).title == "Many small copies"


@pytest.mark.parametrize(("told", "rate"), [
    ({"pcie_gen": 4, "pcie_width": 16, "pcie_width_now": 8}, 15.8e9),
    ({"pcie_gen": 3, "pcie_width": 16}, 15.8e9),
    ({"pcie_gen": 9, "pcie_width": 16}, None), ({}, None)])
def test_what_a_link_carries(told, rate):
    found = link_rate(told)
    assert (found and found[0]) == (rate and pytest.approx(rate, rel=0.01))


# Reads


@pytest.mark.parametrize(("planned", "word"), [
    ({**BUSY, "extras": {"syncs": 1, "sync": 80e6}}, "works meanwhile"),  # .item() of a device-bound loop
    ({"device": STAGES, "lag": {"data": 0.1}, "extras": {"syncs": 1, "sync": 2e5}}, "1.0 blocking reads"),
    ({"device": STAGES, "lag": {"data": 0.1}, "extras": {"syncs": 0, "sync": 0}}, "no blocking read"),
])
def test_harmless_reads_are_not_blamed(path, planned, word):
    assert word in sync_bound.check(gpu_facts(path, **planned)).ruled_out


def test_reads_that_take_time_need_a_trace(path):
    facts = gpu_facts(path, device=STAGES, lag={"data": 0.1}, extras={"syncs": 40, "sync": 5e6},
                      gpu={"gpu.util": 0.3})
    assert "--trace-steps" in sync_bound.check(facts).lacks


# Precision and convolutions


def test_float32_products_where_tensor_cores_would_do(path):
    found = finding(tensor_cores, gpu_facts(path, **BUSY, properties={"numerics": FLOAT32}))
    assert found.remedy.to_json() == {"setting": "matmul_precision", "from": "highest", "to": "high"}
    assert found.severity == "warning" and found.prediction is None


@pytest.mark.parametrize(("told", "device_is", "word"), [
    ({"autocast": "bfloat16"}, {}, "autocast"), ({"weights": {"bfloat16": 9}}, {}, "bfloat16"),
    ({"matmul_precision": "high"}, {}, "high"), ({}, {"compute_capability": "7.5"}, "no tensor cores"),
])
def test_nothing_to_say_of_precision(path, told, device_is, word):
    facts = gpu_facts(path, **BUSY, properties={"numerics": {**FLOAT32, **told}}, device_is=device_is)
    assert word in tensor_cores.check(facts).ruled_out


def test_precision_matters_less_beside_tf32_convolutions_or_a_host_that_holds_up(path, tmp_path):
    told = {"numerics": {**FLOAT32, "convolutions": True}}
    assert finding(tensor_cores, gpu_facts(path, **BUSY, properties=told)).severity == "info"
    idle = gpu_facts(tmp_path / "b.stepscope", device=STAGES, lag={"data": 0.1}, gpu={"gpu.util": 0.1},
                     properties={"numerics": FLOAT32})
    assert finding(tensor_cores, idle).severity == "info"


@pytest.mark.parametrize(("numerics", "seen", "word"), [
    ({}, SHAPES, ""), ({"cudnn_benchmark": True}, SHAPES, "already"),
    ({"convolutions": False}, SHAPES, "no conv"), ({"convolutions": None}, SHAPES, None),
    ({}, {**SHAPES, "distinct": 9, "common_batches": 9}, "9 shapes"),
])
def test_a_search_of_convolutions_is_worth_a_try_for_one_shape(path, numerics, seen, word):
    told = {"numerics": {**FLOAT32, "convolutions": True, **numerics}, "shapes": seen}
    outcome = convolutions.check(gpu_facts(path, **BUSY, properties=told))
    if word:
        assert word in outcome.ruled_out
    elif word is None:
        assert outcome.lacks
    else:
        assert outcome.findings[0].remedy.setting == "cudnn_benchmark" and not outcome.findings[0].cost_ms


@pytest.mark.parametrize(("gpu", "word"), [
    ({"gpu.mem_util": 0.7, "gpu.power": 600}, "bandwidth"), ({"gpu.power": 200}, "may fill"),
    ({"gpu.power": 600}, "arithmetic")])
def test_what_limits_a_busy_device(path, gpu, word):
    found = finding(compute_bound, gpu_facts(path, **BUSY, gpu={"gpu.util": 0.99, **gpu}))
    assert word in found.advice
    assert evidence(found, "Power, of its limit") == pytest.approx(gpu["gpu.power"] / 700)


@pytest.mark.parametrize(("sms", "occupancy", "tensor", "dram", "word"), [
    (0.9, 0.5, 0.3, 0.7, "bandwidth is the limit"), (0.4, 0.5, 0.3, 0.2, "40 % of the multiprocessors"),
    (0.9, 0.05, 0.3, 0.2, "more work each"), (0.9, 0.5, 0.01, 0.2, "tensor cores idle"),
    (0.9, 0.5, 0.4, 0.3, "arithmetic")])
def test_what_limits_a_busy_device_by_its_own_counters(path, sms, occupancy, tensor, dram, word):
    counted = {"gpu.sm_active": sms, "gpu.sm_occupancy": occupancy, "gpu.tensor_active": tensor,
               "gpu.dram_active": dram}
    gpu = {"gpu.util": 0.99, "gpu.power": 200, **counted}
    found = finding(compute_bound, gpu_facts(path, **BUSY, gpu=gpu))
    assert word in found.advice and evidence(found, "SM activity") == pytest.approx(sms)


# Shapes

VARIED = {**SHAPES, "distinct": 40, "common_batches": 3, "changes": 58, "smallest": [64, 3, 4, 4]}


def with_new(path, extra_ms, **planned):
    told = {"shapes": VARIED, **planned.pop("properties", {})}
    return with_new_shapes(path, extra_ms, properties=told, **planned)


def test_new_shapes_cost_what_their_steps_take_longer(path):
    facts = with_new(path, 12.0, gpu={"gpu.util": 0.5}, lag={"data": 0.1},
                     properties={"numerics": {**FLOAT32, "convolutions": True, "cudnn_benchmark": True}})
    found = finding(shapes, facts)
    assert evidence(found, "Such a step takes longer") == pytest.approx(12.0, abs=0.1)
    assert found.cost_ms == pytest.approx(4.0, rel=0.1) and found.severity == "error"
    assert found.remedy.to_json() == {"setting": "cudnn_benchmark", "from": True, "to": False}
    assert found.prediction.at_most and 1.15 < found.prediction.high < 1.3


def test_a_workload_fills_its_batches_up(path):
    workload = {"name": "image_classification", "settings": {"static_shapes": False}}
    facts = with_new(path, 12.0, gpu={"gpu.util": 0.5}, lag={"data": 0.1}, meta={"workload": workload})
    assert finding(shapes, facts).remedy.setting == "static_shapes"


def test_shapes_on_a_cpu_are_told_and_not_blamed(path):
    found = finding(shapes, with_new(path, 12.0))
    assert found.severity == "info" and found.cost_ms == 0
    assert found.prediction is None and found.remedy is None


def test_steps_that_new_shapes_do_not_slow_take_no_negative_time_longer(path):
    found = finding(shapes, with_new(path, -8.0, gpu={"gpu.util": 0.5}, lag={"data": 0.1}))
    assert found.cost_ms == 0 and not any("takes longer" in e.text for e in found.evidence)
    assert any("no longer than the others" in e.text for e in found.counter_evidence)


@pytest.mark.parametrize("told", [SHAPES, {**SHAPES, "distinct": 2, "common_batches": 31},
                                  {**SHAPES, "distinct": 5, "common_batches": 52}])
def test_one_shape_and_the_last_batch_of_an_epoch_are_no_variety(path, told):
    assert shapes.check(gpu_facts(path, properties={"shapes": told}, lag={"data": 1})).ruled_out


@pytest.mark.parametrize("on_gpu", [True, False])
def test_graphs_that_are_compiled_again(path, on_gpu):
    """Every 200 ms a graph that takes 20 ms: a tenth of the time, on a CPU too."""
    own = {"torch.graphs": lambda k: k // 2, "torch.compile_time": lambda k: k // 2 * 20e6}
    facts = gpu_facts(path, of_process=own, properties={"shapes": SHAPES}, stages=CPU_STAGES_MS,
                      **({"lag": {"data": 1}} if on_gpu else {"gpu": None}))
    assert facts.on_device is on_gpu
    found = finding(shapes, facts)
    assert found.title == "Graphs compiled again" and found.severity == "warning"
    assert found.cost_ms == pytest.approx(5.6, rel=0.1)


# Others


def of_list(path, others, users, used=45, **planned):
    gpu = {"gpu.util": 0.9, "gpu.mem_used": used * GIB}
    if others is not None:
        gpu["gpu.other_processes"] = others
    return gpu_facts(path, torch=memory(), users=users, gpu=gpu, **planned)


@pytest.mark.parametrize(("others", "users", "used", "wanted"), [
    (1, {1: ("target", 45 * GIB), 2: ("other", 9 * GIB)}, 54, "warning"),
    (0, {1: ("target", 45 * GIB)}, 45, "ruled_out"),
    (1, {7: (FOREIGN, 45 * GIB)}, 45, "lacks"),  # a container: the one that is listed is the loop itself
    (2, {7: (FOREIGN, 45 * GIB), 8: (FOREIGN, 9 * GIB)}, 54, "warning"),
    (None, {}, 45, "lacks"), (None, {}, 60, "info"), (1, {7: (FOREIGN, 45 * GIB)}, 60, "info"),
])
def test_others_on_the_gpu_also_from_inside_a_container(path, others, users, used, wanted):
    outcome = other_processes.check(of_list(path, others, users, used))
    if wanted in ("ruled_out", "lacks"):
        assert getattr(outcome, wanted) and not outcome.findings
    else:
        assert outcome.findings[0].severity == wanted
        assert UUID not in outcome.findings[0].title


@pytest.mark.parametrize(("busy", "severity", "title"), [
    ({1: 0.6, 2: 0.3}, "warning", "Other processes compute on this GPU"),
    ({1: 0.9, 2: 0.0}, "info", "Other processes hold memory of this GPU"),
    ({1: 0.9}, "warning", "Other processes use this GPU"),  # of the other it is not told
])
def test_who_computes_says_more_than_who_holds_memory(path, busy, severity, title):
    users = {1: ("target", 45 * GIB), 2: ("other", 9 * GIB)}
    (found,) = other_processes.check(of_list(path, 1, users, 54, busy=busy)).findings
    assert (found.severity, found.title) == (severity, title)
    against = [e.text for e in found.counter_evidence]
    assert any("does not say who computes" in text for text in against) is (2 not in busy)
    if 2 in busy:
        assert evidence(found, "Process 2, utilization") == pytest.approx(busy[2])


def test_n15_a_process_whose_memory_is_not_told_is_known_by_what_it_does(path):
    users = {1: ("target", 45 * GIB), 2: ("other", None)}
    (found,) = other_processes.check(of_list(path, 1, users, 54, busy={1: 0.5, 2: 0.4})).findings
    assert found.title == "Other processes compute on this GPU"
    assert not any("Process 2, memory" in e.text for e in found.evidence)
