"""Which operators of a trace are counted, once each, and what time is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.efficiency.work import Counted, counted
from profiler.analysis.trace.joined import Joined
from tests.reference import needs_reference, trace
from tests.traces import Timeline

V100 = {"id": 0, "name": "Tesla V100-SXM2-32GB", "computeMajor": 7, "computeMinor": 0, "numSms": 80}
MI300X = {"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64, "numSms": 304}
MM: dict[str, Any] = {"dims": [[3, 4], [4, 5]], "types": ["float", "float"]}
FLOPS = 2 * 3 * 4 * 5


def count(timeline: Timeline) -> Counted:
    return counted(Owners(Joined(timeline.trace())))


def launched(timeline: Timeline, t: int, correlation: int, *, name: str = "gemm", took: int = 1000,
             thread: int = 1, call: str = "cudaLaunchKernel") -> Timeline:
    """A kernel launched at t, which runs 1 us later."""
    timeline.call(call, t, t + 100, correlation, thread)
    return timeline.kernel(name, t + 1000, t + 1000 + took, correlation)


def test_of_operators_inside_each_other_the_innermost_counts() -> None:
    timeline = (Timeline().op("aten::linear", 0, 1000, dims=[[3, 4], [5, 4], [5]], types=["float"] * 3)
                .op("aten::addmm", 100, 900, dims=[[5], [3, 4], [4, 5], [], []],
                    types=["float", "float", "float", "Scalar", "Scalar"]))
    found = count(launched(timeline, 300, 1))
    assert (found.model.tolist(), found.time.tolist(), found.share) == ([FLOPS], [1000], 1.0)


def test_an_outer_operator_counts_where_the_inner_one_is_silent() -> None:
    timeline = (Timeline().op("aten::linear", 0, 1000, dims=[[3, 4], [5, 4], [5]], types=["float"] * 3)
                .op("aten::addmm", 100, 900))
    found = count(launched(timeline, 300, 1))
    assert (found.model.tolist(), found.time.tolist(), found.silent) == ([FLOPS], [1000], 0)


def test_operators_without_shapes_are_told_as_silent() -> None:
    timeline = Timeline().op("aten::linear", 0, 1000).op("aten::addmm", 100, 900)
    found = count(timeline.op("aten::add", 2000, 2100))
    assert (len(found), found.silent, found.share) == (0, 1, 0.0)


def test_time_is_of_the_kernels_launched_inside() -> None:
    timeline = Timeline().op("aten::mm", 0, 1000, **MM).op("aten::mm", 10_000, 11_000, **MM)
    launched(timeline, 100, 1, took=700)
    launched(timeline, 300, 2, took=400)
    launched(timeline, 10_300, 3, took=50)
    launched(timeline, 20_000, 4, took=1150)
    found = count(timeline)
    assert found.time.tolist() == [1100, 50] and found.share == pytest.approx(0.5)


def test_other_operators_count_nothing() -> None:
    found = count(Timeline().op("aten::add", 0, 1000, **MM))
    assert (len(found), found.silent, found.share) == (0, 0, 0.0)


def test_strides_that_are_not_told_are_seen_in_backward() -> None:
    image, weight, out = [2, 3, 8, 8], [4, 3, 3, 3], [2, 4, 4, 4]
    forward = 2 * 2 * 4 * 4 * 4 * 3 * 3 * 3
    timeline = (Timeline().op("aten::conv2d", 0, 1000, dims=[image, weight], types=["float"] * 2)
                .op("aten::cudnn_convolution_backward", 5000, 7000, dims=[image, out, weight],
                    types=["float"] * 3)
                .op("aten::cudnn_convolution_backward_input", 5100, 5900)
                .op("aten::cudnn_convolution_backward_weight", 6000, 6900))
    assert count(timeline).model.tolist() == [forward, 2 * forward]
    timeline.op("aten::cudnn_convolution_backward", 8000, 9000, dims=[image, [2, 4, 6, 6], weight],
                types=["float"] * 3).op("aten::cudnn_convolution_backward_weight", 8100, 8900)
    found = count(timeline)
    assert found.silent == 1  # two strides are possible now
    assert found.model.tolist() == [2 * forward, forward * 36 // 16]


def checkpointed(sequence: int) -> Timeline:
    """Backward of a checkpointed block: forward again, then the gradient."""
    return (Timeline().op("CheckpointFunctionBackward", 0, 10_000, thread=2, sequence=9, forward_thread=1)
            .op("aten::linear", 1000, 2000, thread=2, sequence=sequence)
            .op("aten::mm", 1100, 1900, thread=2, **MM)
            .op("MmBackward0", 3000, 5000, thread=2, sequence=20, forward_thread=2)
            .op("aten::mm", 3100, 4900, thread=2, **MM))


def test_forward_that_is_done_again_is_no_work_of_the_model() -> None:
    found = count(checkpointed(20))
    assert found.again.tolist() == [True, False]
    assert (found.model.tolist(), found.executed.tolist()) == ([0, FLOPS], [FLOPS, FLOPS])


def test_operators_of_backward_itself_are_work() -> None:
    """Gradients are off in backward: its operators have no sequence number."""
    timeline = (Timeline().op("MmBackward0", 0, 5000, thread=2, sequence=20, forward_thread=1)
                .op("aten::mm", 100, 900, thread=2, **MM))
    assert count(timeline).model.tolist() == [FLOPS]


@pytest.mark.parametrize(("properties", "kernel", "call", "dtype"), [
    (V100, "volta_sgemm_128x32_nt", "cudaLaunchKernel", "fp32"),
    (V100, "ampere_fp32_s1688gemm_tf32_128x128_nn", "cudaLaunchKernel", "tf32"),
    (MI300X, "Cijk_Ailk_Bljk_S_MT64x64x32_MI16x16x4x1", "hipExtModuleLaunchKernel", "fp32"),
])
def test_fp32_on_tensor_cores_is_tf32(properties: dict[str, Any], kernel: str, call: str, dtype: str) -> None:
    timeline = Timeline(deviceProperties=[properties]).op("aten::mm", 0, 1000, **MM)
    assert count(launched(timeline, 100, 1, name=kernel, call=call)).dtype == (dtype,)


@needs_reference
def test_a_training_step_of_resnet50() -> None:
    """Six steps of 32 images: three times the forward pass, which takes 4.09 G multiply-adds an image, less
    the gradient of the images, which nobody asks for. With and without types and sequence numbers."""
    first = 32 * 2 * 112 * 112 * 64 * 3 * 49
    expected = 6 * (3 * 32 * 2 * 4.089e9 - first)
    for name in ("v100_resnet50_workers0.json.gz", "v100_resnet50_profiler_api_workers0.json.gz"):
        found = counted(Owners(Joined(trace(name))))
        assert found.silent == 0
        assert float(found.model.sum()) == pytest.approx(expected, rel=0.001)
