"""Roofline points, peaks and MFU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from profiler.analysis.trace import steady, steps
from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.efficiency.efficiency import Mfu, mfu
from profiler.analysis.trace.efficiency.peaks import peak
from profiler.analysis.trace.efficiency.roofline import COMPUTE, MEMORY, Roofline, roofline
from profiler.analysis.trace.efficiency.work import counted
from profiler.analysis.trace.joined import Joined
from tests.reference import needs_reference, trace
from tests.traces import Timeline

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
BF16 = ["c10::BFloat16", "c10::BFloat16"]


@pytest.mark.parametrize(("name", "dtype", "tflops"), [
    ("Tesla V100-SXM2-16GB", "fp16", 125), ("Tesla V100-PCIE-32GB", "fp16", 112), ("Tesla T4", "fp16", 65),
    ("NVIDIA A100-SXM4-80GB", "bf16", 312), ("NVIDIA A100 80GB PCIe", "tf32", 156),
    ("NVIDIA H100 80GB HBM3", "bf16", 989.4), ("NVIDIA H100 PCIe", "bf16", 756), ("NVIDIA A10", "bf16", 125),
    ("NVIDIA H200", "fp8", 1978.9),
    ("NVIDIA L4", "bf16", 121), ("NVIDIA L40S", "bf16", 362), ("NVIDIA B200", "bf16", 2250),
    ("NVIDIA GeForce RTX 2080 Ti", "fp32", 13.4), ("NVIDIA GeForce RTX 3090", "tf32", 35.6),
    ("NVIDIA GeForce RTX 4090", "bf16", 165.2), ("AMD Instinct MI300X", "bf16", 1307.4),
    ("AMD Instinct MI250X", "bf16", 191.5),
])
def test_peaks_are_dense_and_name_their_source(name: str, dtype: str, tflops: float) -> None:
    found = peak({"name": name}).peak
    assert found is not None and found.tflops[dtype] == tflops and found.source and found.bandwidth > 0


@pytest.mark.parametrize("properties", [
    None, {}, {"name": ""}, {"name": "NVIDIA GeForce RTX 3080 Ti"}, {"name": "NVIDIA H20"}, {"name": "A1000"},
    {"name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb"}, {"name": "NVIDIA A100-SXM4-40GB", "numSms": 14},
    {"name": "NVIDIA GeForce RTX 4090 Laptop GPU"}, {"name": "NVIDIA A10G"}, {"name": 7},
])
def test_an_unknown_device_has_no_peak(properties: dict[str, Any] | None) -> None:
    found = peak(properties)
    assert found.peak is None and found.reason


def test_the_number_of_units_tells_dies_of_one_name_apart() -> None:
    name = "AMD Instinct MI250X/MI250"
    found = [peak({"name": name, "numSms": units}).peak for units in (104, 110)]
    assert [p.device.split(",")[0] for p in found if p] == ["MI250", "MI250X"]


def job(properties: list[dict[str, Any]] | None = None, size: int = 1024, took: int = 20_000,
        types: list[str] | None = None) -> Timeline:
    """Four steps of 100 us, each with a square matrix product of 20 us."""
    timeline = Timeline(deviceProperties=[A100] if properties is None else properties)
    for k in range(4):
        t = k * 100_000
        timeline.step(k, t, t + 100_000)
        timeline.op("aten::mm", t + 1000, t + 3000, dims=[[size, size], [size, size]], types=types or BF16)
        timeline.call("cudaLaunchKernel", t + 1500, t + 2000, k + 1)
        timeline.kernel("gemm", t + 10_000, t + 10_000 + took, k + 1)
    return timeline


def asked(timeline: Timeline) -> tuple[Mfu, Roofline]:
    j = Joined(timeline.trace())
    owners, found = Owners(j), steps.find(j)
    work = counted(owners)
    step_ns = steady.steady(j, found).step_ns
    return mfu(owners, work, found, step_ns, j.main_device), roofline(owners, work)


def test_mfu_is_model_flops_over_step_time_and_peak() -> None:
    found, _ = asked(job())
    flops = 2 * 1024**3
    assert found.flops_per_step == flops and found.step_ns == 100_000
    assert found.achieved_tflops == pytest.approx(flops / 100e-6 / 1e12)
    assert found.value == pytest.approx(flops / 100e-6 / 312e12)
    assert (found.dtype, found.peak_tflops) == ("bf16", 312)
    assert "data sheet" in found.source and "multiply-add" in found.convention and found.notes == ()


@pytest.mark.parametrize(("timeline", "why"), [
    (job(properties=[{**A100, "name": "Some GPU"}]), "no peak is known for Some GPU"),
    (job(properties=[]), "does not name the device"),
    (job(types=["", ""]), "type that the trace does not tell"),
    (job(types=["double", "nonsense"], properties=[{**A100, "name": "NVIDIA L4", "numSms": 58}]), "for fp64"),
    (Timeline().op("aten::mm", 0, 10, dims=[[8, 8], [8, 8]], types=BF16), "no steps"),
])
def test_without_a_peak_there_is_no_mfu(timeline: Timeline, why: str) -> None:
    found, _ = asked(timeline)
    assert found.value is None and why in found.reason


def test_without_shapes_there_is_no_mfu() -> None:
    timeline = job()
    for event in timeline.events:
        event["args"].pop("Input Dims", None)
    found, points = asked(timeline)
    assert found.value is None and "record_shapes" in found.reason and points.points == ()


def test_kernels_of_no_operator_make_it_a_lower_bound() -> None:
    timeline = job()
    for k in range(4):
        timeline.call("cudaGraphLaunch", k * 100_000 + 4000, k * 100_000 + 5000, 100 + k)
        timeline.kernel("gemm", k * 100_000 + 40_000, k * 100_000 + 60_000, 100 + k)
    found, _ = asked(timeline)
    assert any("50 % of kernel time" in note for note in found.notes)


def test_operators_on_the_host_are_no_work_of_the_device() -> None:
    timeline = job()
    timeline.op("aten::mm", 50_000, 90_000, thread=5, dims=[[4096, 4096], [4096, 4096]], types=BF16)
    assert asked(timeline)[0].flops_per_step == 2 * 1024**3


def test_a_roofline_point() -> None:
    _, found = asked(job())
    [point], [roof] = found.points, found.roofs
    flops, size = 2 * 1024**3, 2 * 3 * 1024**2
    assert (point.count, point.flops, point.bytes, point.time_ns) == (4, 4 * flops, 4 * size, 80_000)
    assert point.tflops == pytest.approx(flops / 20e-6 / 1e12)
    assert point.intensity == pytest.approx(flops / size)
    assert (point.bound, point.attainable) == (COMPUTE, 312) and roof.tflops == 312 and roof.gbs == 1555
    assert point.share == pytest.approx(point.tflops / 312)


def test_small_products_are_bound_by_memory() -> None:
    _, found = asked(job(size=64))
    [point] = found.points
    assert point.bound == MEMORY and point.attainable == pytest.approx((point.intensity or 0) * 1.555)


def test_a_point_without_a_peak_has_no_bound() -> None:
    _, found = asked(job(properties=[]))
    [point] = found.points
    assert (point.bound, point.attainable, point.share) == (None, None, None) and point.tflops > 0
    assert found.roofs[0].source == "the trace does not name the device"


def test_points_are_of_equal_shapes_and_kept_rows() -> None:
    timeline = job()
    timeline.op("aten::mm", 410_000, 412_000, dims=[[512, 512], [512, 512]], types=BF16)
    timeline.call("cudaLaunchKernel", 410_500, 411_000, 99).kernel("gemm", 420_000, 421_000, 99)
    j = Joined(timeline.trace())
    owners = Owners(j)
    work = counted(owners)
    assert [point.count for point in roofline(owners, work).points] == [4, 1]
    assert [point.count for point in roofline(owners, work, np.arange(5) < 2).points] == [2]


@needs_reference
@pytest.mark.parametrize("name", ["h100_owlv2.json.gz", "h100_timesformer.json.gz",
                                  "mi300_bert_small.json.gz", "diff_control_a100.json.gz",
                                  "torch_compile_triton.json.gz"])
def test_real_operators_stay_below_their_roof(name: str) -> None:
    j = Joined(trace(name))
    owners = Owners(j)
    found = roofline(owners, counted(owners))
    shares = [point.share for point in found.points if point.share is not None]
    assert shares and max(shares) < 1
