"""Which kernels run on matrix units: tensor cores on NVIDIA, matrix cores on AMD. Definitions, section 8.

A lower bound: a kernel counts when its name shows the instructions, or when its
operator cannot do without them; the rest is not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from profiler.analysis.trace.joined import take
from profiler.trace import names
from profiler.trace.model import Flags, Kind

if TYPE_CHECKING:
    from profiler.analysis.trace.code.owners import Owners

# Names of instructions and of the kernel families that exist for them alone.
_KERNEL = re.compile(
    r"tensorop|wmma|hmma|imma|qmma|dmma|bmma|gmma|utcmma|tcgen05|warpgroupsize|nvjet"
    r"|tensor\d+x\d+x\d+|[hisdzc](884|1688|16816|161616|16832|16864|168128|168256|8816|8832|88128)"
    r"(gemm|cudnn|fprop|dgrad|wgrad)"
    r"|mfma|xdlops|Cijk_\w*_MI\d+x\d+"                       # AMD: Tensile and Composable Kernel
    r"|flash_(fwd|bwd)\w*_kernel|flash::(flash|compute_d?q|FlashAttn)|device_kernel\w*flash"
    r"|fmha_cutlass[FB]_(f16|bf16)_aligned\w*_sm(7|8|9|1\d)|cudnn\w*_sdpa_sm\d", re.I)
# Preparations and reductions beside an attention kernel use no matrix units.
_BESIDE = re.compile(r"dot_do_o|convert_d[qkv]|clear_d[qkv]|combine|preprocess|reduce", re.I)
# Operators that could use matrix units, whatever kernel was chosen.
_ELIGIBLE = re.compile(
    r"^(aten|cudnn|miopen|flash_attn\w*|xformers\w*|vllm|triton)?(::)?_?(cudnn_|miopen_|slow_|thnn_)?"
    r"(conv(olution)?(_transpose|_depthwise)?(1d|2d|3d|_tbc)?(_overrideable)?(_backward(_input|_weight)?)?"
    r"|convolution_nogroup|addmm|addmm_activation|addbmm|baddbmm|bmm|mm|matmul|linear|scaled_mm|grouped_mm|int_mm"
    r"|chain_matmul|einsum|rnn(_backward)?|gru(_cell)?|lstm(_cell)?|lstm_mps"
    r"|(scaled_dot_product_)?\w*attention(_forward|_backward)?)_?$", re.I)
# Inductor's templates of matrix products: on these types Triton's dot always uses matrix units.
_TEMPLATE = re.compile(r"^triton_tem_\w*(mm|convolution)", re.I)
# These operators take 16-bit types alone and exist for matrix units.
_ATTENTION = re.compile(r"^(aten::_flash_attention_|aten::_cudnn_attention_|flash_attn)", re.I)
_ATTENTION_KERNEL = re.compile(r"attn|attention|fmha|flash", re.I)
_NARROW = re.compile(r"Half|BFloat16|Float8", re.I)
_SIMT = re.compile(r"_ffma_|simt", re.I)


def in_name(name: str) -> bool:
    """Whether a kernel's name says that it uses matrix units."""
    return bool(_KERNEL.search(name)) and not _BESIDE.search(name) and not _SIMT.search(name)


def eligible(name: str) -> bool:
    """Whether an operator of this name could use matrix units."""
    return bool(_ELIGIBLE.match(name))


def used(owners: Owners) -> Flags:
    """Kernels that use matrix units as far as names and operators tell: bool[n] beside Trace.device."""
    trace = owners.trace
    kernel = trace.device.kind == Kind.KERNEL
    result = kernel & owners.joined.device_names(in_name).astype(bool)
    template = kernel & owners.joined.device_names(lambda n: bool(_TEMPLATE.match(n))).astype(bool)
    if template.any():
        types = take(trace.host.types, owners.device_operator)
        narrow = names.per_name(trace.names, types, lambda text: bool(_NARROW.search(text))).astype(bool)
        result |= template & narrow
    attention = kernel & owners.joined.device_names(
        lambda n: bool(_ATTENTION_KERNEL.search(n)) and not _BESIDE.search(n)).astype(bool)
    if attention.any():
        operator = take(trace.host.name, owners.device_operator)
        result |= attention & names.per_name(
            trace.names, operator, lambda text: bool(_ATTENTION.match(text))).astype(bool)
    return result


def could_use(owners: Owners) -> Flags:
    """Kernels launched inside an operator that could use matrix units: bool[n] beside Trace.device."""
    trace = owners.trace
    host = owners.is_operator & owners.joined.host_names(eligible).astype(bool)
    if not host.any():
        return np.zeros(len(trace.device), bool)
    # An eligible operator calls the one that launches, in one or two further steps.
    row = owners.device_operator
    result = np.zeros(len(row), bool)
    for _ in range(4):
        result |= (row >= 0) & host[row]
        row = take(owners.enclosing, row)
    return result & (trace.device.kind == Kind.KERNEL)
