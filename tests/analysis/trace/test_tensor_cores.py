"""Which kernels use matrix units."""

from __future__ import annotations

import pytest

from profiler.analysis.trace.code.owners import Owners
from profiler.analysis.trace.device import tensor_cores
from profiler.analysis.trace.joined import Joined
from tests.traces import Timeline


@pytest.mark.parametrize("name", [
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "volta_h884gemm_64x64_ldg8_tn",
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(Params)",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_"
    "tensor16x8x8_execute_kernel_cudnn",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
    "void pytorch_flash::flash_fwd_kernel<Traits, false>(Params)",
    "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Traits>(Params)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1"])
def test_names_that_say_so(name: str) -> None:
    assert tensor_cores.in_name(name)


@pytest.mark.parametrize("name", [
    "volta_sgemm_128x64_nn", "ampere_sgemm_32x32_sliced1x4_tn",
    "void gemmSN_TN_kernel<float, 128, 16>(Params)",
    "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(Params)",
    "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int)",
    "ncclDevKernel_AllReduce_Sum_f32",
    "void pytorch_flash::flash_fwd_splitkv_combine_kernel<Traits>(Params)",
    "void flash_bwd_dot_do_o_kernel<true, Traits>(Params)",
    "void at::native::reduce_kernel<512, 1, ReduceOp>(R)",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm50(Params)",
    "void fft2d_r2c_32x32<float, false, 0u, false>(float2*)",
    "Cijk_Ailk_Bjlk_SB_MT64x64x16_SN_K1", "triton_poi_fused_add_16816"])
def test_names_that_do_not(name: str) -> None:
    assert not tensor_cores.in_name(name)


@pytest.mark.parametrize("name", [
    "aten::conv2d", "aten::_convolution", "aten::cudnn_convolution",
    "aten::cudnn_convolution_backward_weight",
    "aten::convolution_backward", "aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::linear",
    "aten::matmul", "aten::_scaled_mm", "aten::lstm", "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_flash_attention", "aten::_flash_attention_backward",
    "aten::miopen_convolution"])
def test_operators_that_could(name: str) -> None:
    assert tensor_cores.eligible(name)


@pytest.mark.parametrize("name", ["aten::add", "aten::mul", "aten::mm_thing", "aten::softmax", "aten::copy_",
                                  "ConvolutionBackward0", "aten::max_pool2d", "nn.Module: Conv2d_0"])
def test_operators_that_could_not(name: str) -> None:
    assert not tensor_cores.eligible(name)


def used(operator: str, kernel: str, types: list[str]) -> bool:
    made = (Timeline().op(operator, 0, 50, types=types).call("cudaLaunchKernel", 10, 20, 1)
            .kernel(kernel, 30, 40, 1))
    return bool(tensor_cores.used(Owners(Joined(made.trace())))[0])


def test_a_compiled_product_counts_on_narrow_types() -> None:
    assert used("triton_tem_fused_mm_0", "triton_tem_fused_mm_0", ["c10::BFloat16"])
    assert not used("triton_tem_fused_mm_0", "triton_tem_fused_mm_0", ["float"])
    assert not used("triton_poi_fused_add_0", "triton_poi_fused_add_0", ["c10::BFloat16"])


def test_an_attention_operator_tells_what_the_name_does_not() -> None:
    assert used("aten::_flash_attention_forward", "attn_fwd", [])
    assert not used("aten::_flash_attention_backward", "bwd_preprocess", [])
    assert not used("aten::add", "attn_fwd", [])


def test_work_inside_an_eligible_operator_could_use_them() -> None:
    made = (Timeline().op("aten::conv2d", 0, 100).op("aten::_convolution", 5, 95).op("aten::add_", 10, 50)
            .call("cudaLaunchKernel", 20, 30, 1).kernel("bias", 40, 50, 1)
            .op("aten::add", 200, 250).call("cudaLaunchKernel", 210, 220, 2).kernel("add", 230, 240, 2))
    assert tensor_cores.could_use(Owners(Joined(made.trace()))).tolist() == [True, False]
