"""Operators as torch writes them, with the kernels they launch on each generation of device."""

from __future__ import annotations

from typing import NamedTuple


class Op(NamedTuple):
    """A forward operator and its backward. Weights are relative kernel times."""

    names: tuple[str, ...]  # nested, outermost first
    kernel: str  # key of KERNELS
    weight: float
    module: str = ""
    node: str = ""  # autograd node; empty: none
    backward: tuple[str, ...] = ()
    grads: tuple[tuple[str, float], ...] = ()  # kernels of the backward
    parameter: bool = False  # its backward accumulates a gradient


FORWARD = {
    "linear": Op(
        ("aten::linear", "aten::addmm"),
        "gemm",
        1.0,
        "Linear",
        "AddmmBackward0",
        ("aten::mm",),
        (("gemm", 1.0), ("gemm", 0.9)),
        True,
    ),
    "conv": Op(
        ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution"),
        "conv",
        1.2,
        "Conv2d",
        "ConvolutionBackward0",
        ("aten::convolution_backward",),
        (("conv", 1.2), ("conv", 1.3)),
        True,
    ),
    "norm": Op(
        ("aten::layer_norm", "aten::native_layer_norm"),
        "norm",
        0.35,
        "LayerNorm",
        "NativeLayerNormBackward0",
        ("aten::native_layer_norm_backward",),
        (("norm", 0.3), ("reduce", 0.25)),
        True,
    ),
    "batch_norm": Op(
        ("aten::batch_norm", "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm"),
        "norm",
        0.4,
        "BatchNorm2d",
        "CudnnBatchNormBackward0",
        ("aten::cudnn_batch_norm_backward",),
        (("norm", 0.6),),
        True,
    ),
    "gelu": Op(
        ("aten::gelu",),
        "pointwise",
        0.3,
        "GELU",
        "GeluBackward0",
        ("aten::gelu_backward",),
        (("pointwise", 0.35),),
    ),
    "relu": Op(
        ("aten::relu_", "aten::clamp_min_"),
        "pointwise",
        0.25,
        "ReLU",
        "ReluBackward0",
        ("aten::threshold_backward",),
        (("pointwise", 0.25),),
    ),
    "add": Op(("aten::add",), "pointwise", 0.3, "", "AddBackward0", (), ()),
    "dropout": Op(
        ("aten::dropout", "aten::native_dropout"),
        "pointwise",
        0.3,
        "Dropout",
        "NativeDropoutBackward0",
        ("aten::native_dropout_backward",),
        (("pointwise", 0.3),),
    ),
    "view": Op(("aten::transpose",), "", 0.0),
    "sdpa": Op(
        (
            "aten::scaled_dot_product_attention",
            "aten::_scaled_dot_product_flash_attention",
            "aten::_flash_attention_forward",
        ),
        "flash",
        1.4,
        "Attention",
        "ScaledDotProductFlashAttentionBackward0",
        ("aten::_flash_attention_backward",),
        (("reduce", 0.2), ("flash", 2.2)),
    ),
    "embedding": Op(
        ("aten::embedding", "aten::index_select"),
        "index",
        0.3,
        "Embedding",
        "EmbeddingBackward0",
        ("aten::embedding_backward", "aten::embedding_dense_backward"),
        (("sort", 0.3), ("index", 0.4)),
        True,
    ),
}
LOSS = (
    Op(("aten::cross_entropy_loss", "aten::log_softmax", "aten::_log_softmax"), "softmax", 0.2),
    Op(
        ("aten::nll_loss_nd", "aten::nll_loss_forward"),
        "reduce",
        0.1,
        "",
        "NllLossBackward0",
        ("aten::nll_loss_backward",),
        (("pointwise", 0.1),),
    ),
)
BLOCKS = {
    "transformer": (
        "norm",
        "linear",
        "view",
        "sdpa",
        "linear",
        "dropout",
        "add",
        "norm",
        "linear",
        "gelu",
        "linear",
        "add",
    ),
    "convolution": ("conv", "batch_norm", "relu", "conv", "batch_norm", "add", "relu"),
    "recommender": ("embedding", "linear", "relu", "linear", "relu"),
}
PER_PARAMETER = ("aten::mul_", "aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::addcdiv_")

KERNELS = {
    "gemm": {
        "V100": "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
        "A100": "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_64x3_nn",
        "H100": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas",
    },
    "conv": {
        "V100": "volta_fp16_s884cudnn_fp16_128x128_ldg8_wgrad_exp_interior_nhwc_nt_v1",
        "A100": "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
        "H100": "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize256x128x64",
    },
    "norm": "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>()",
    "pointwise": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()",
    "flash": "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64, 4, false> >()",
    "reduce": "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >()",
    "softmax": "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>()",
    "index": "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2>()",
    "sort": "void at::native::(anonymous namespace)::compute_grad_weight<c10::Half, long>()",
    "multi": "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4> >()",
}
COLLECTIVE = {
    "V100": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "A100": "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    "H100": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}


class Gpu(NamedTuple):
    """A device: its name and what its host interface costs, us."""

    name: str
    latency: float  # from the start of a launch call to the kernel's
    gap: float  # between kernels in a queue
    rate: float  # GB/s of pinned copies
    capability: tuple[int, int]
    sms: int
    memory: int


GPUS = {
    "V100": Gpu("Tesla V100-SXM2-32GB", 8.5, 1.3, 11.5, (7, 0), 80, 34089730048),
    "A100": Gpu("NVIDIA A100-SXM4-80GB", 6.6, 1.05, 23.0, (8, 0), 108, 85031714816),
    "H100": Gpu("NVIDIA H100 80GB HBM3", 5.6, 0.85, 48.0, (9, 0), 132, 85018279936),
}


def kernel_name(key: str, gpu: str) -> str:
    name = KERNELS[key]
    return name if isinstance(name, str) else name[gpu]
