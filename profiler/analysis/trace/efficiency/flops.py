"""Floating-point operations of matrix products, convolutions and attention, from the shapes of an operator.

Two counts. `model`: what the mathematics of the layer asks for, a multiply-add as two, masks of attention
not taken off, nothing counted twice; that of `torch.utils.flop_counter`, without what backward of fused
attention computes again. `executed`: what a kernel has to do: half of the scores under a causal mask, the
scores once more in backward of fused attention. Bytes: every operand and result once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from profiler.analysis.trace.efficiency import dtypes

MATMUL = "matmul"
CONVOLUTION = "convolution"
ATTENTION = "attention"
Shape = list[int]
MOST = 1 << 60  # no kernel does more; the numbers of a damaged file can be any


@dataclass(frozen=True, slots=True)
class Work:
    """Of one call. `bytes` None: an operand's type is not told."""

    family: str
    model: int
    executed: int
    bytes: int | None
    dtype: str       # fp16, bf16, fp32, ... of the operands; empty when not told


@dataclass(frozen=True, slots=True)
class Call:
    """What the trace says of a call. `out`: the shape of its result, where another event tells it."""

    dims: Sequence[Any]
    types: Sequence[Any]
    concrete: Sequence[Any]
    out: Shape | None = None
    gradients: int | None = None  # how many gradients a backward computes, where its parts tell

    def shape(self, index: int, least: int = 1) -> Shape | None:
        """The shape of an argument with at least that many axes, none of them empty."""
        shape = dtypes.numbers(self.dims[index]) if index < len(self.dims) else None
        return shape if shape and len(shape) >= least and min(shape) > 0 else None

    def shapes(self, *indices: int, least: int = 1) -> list[Shape] | None:
        found = [self.shape(index, least) for index in indices]
        return [shape for shape in found if shape] if all(found) else None

    def values(self, index: int) -> list[int] | None:
        """A list of whole numbers: "[1, 1]", or one as it is."""
        text = str(self.concrete[index]) if index < len(self.concrete) else ""
        return dtypes.numbers(dtypes.decode(text)) if text.startswith("[") else None

    def flag(self, index: int) -> bool | None:
        text = str(self.concrete[index]) if index < len(self.concrete) else ""
        return {"True": True, "False": False}.get(text)

    def dtype(self, index: int) -> str:
        return dtypes.dtype(str(self.types[index])) if index < len(self.types) else ""

    def work(self, family: str, first: int, model: int, moved: Sequence[Shape],
             executed: int | None = None) -> Work:
        """`first`: the argument whose type is the operands'."""
        item = dtypes.size(str(self.types[first])) if first < len(self.types) else -1
        size = item * sum(map(math.prod, moved)) if item > 0 else None
        return Work(family, model, model if executed is None else executed, size, self.dtype(first))


def _mm(call: Call, a: int, b: int) -> Work | None:
    shapes = call.shapes(a, b, least=2)
    if not shapes or any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][0]:
        return None
    (m, k), (_, n) = shapes
    return call.work(MATMUL, a, 2 * m * k * n, [*shapes, [m, n]])


def _bmm(call: Call, a: int, b: int) -> Work | None:
    shapes = call.shapes(a, b, least=3)
    if not shapes or any(len(shape) != 3 for shape in shapes) or shapes[0][2] != shapes[1][1]:
        return None
    (batch, m, k), (_, _, n) = shapes
    return call.work(MATMUL, a, 2 * batch * m * k * n, [*shapes, [batch, m, n]])


def _linear(call: Call) -> Work | None:
    shapes = call.shapes(0, 1)
    if not shapes or not 1 <= len(shapes[1]) <= 2 or shapes[0][-1] != shapes[1][-1]:
        return None
    out = [*shapes[0][:-1], *shapes[1][:-1]]
    return call.work(MATMUL, 0, 2 * math.prod(out) * shapes[0][-1], [*shapes, out])


def _matmul(call: Call, a: int = 0, b: int = 1) -> Work | None:
    """Also of vectors, and with broadcasting."""
    shapes = call.shapes(a, b)
    if not shapes:
        return None
    left, right = (shapes[0] if len(shapes[0]) > 1 else [1, *shapes[0]],
                   shapes[1] if len(shapes[1]) > 1 else [*shapes[1], 1])
    if left[-1] != right[-2]:
        return None
    batch: Shape = []
    for axis in range(1, max(len(left), len(right)) - 1):
        one = left[-2 - axis] if axis < len(left) - 1 else 1
        two = right[-2 - axis] if axis < len(right) - 1 else 1
        if one != two and 1 not in (one, two):
            return None
        batch.insert(0, max(one, two))
    out = [*batch, left[-2], right[-1]]
    return call.work(MATMUL, a, 2 * math.prod(out) * left[-1], [*shapes, out])


def _convolution(call: Call, stride: int, padding: int, dilation: int, *,
                 transposed: int | bool = False) -> Work | None:
    """The result's shape is worked out, or known from elsewhere (`Call.out`)."""
    shapes = call.shapes(0, 1, least=3)
    if not shapes or len(shapes[0]) != len(shapes[1]):
        return None
    image, weight = shapes
    turned = transposed if isinstance(transposed, bool) else call.flag(transposed)
    out = call.out if call.out and len(call.out) == len(image) else None
    if turned is None and out:
        turned = out[1] != weight[0] and image[1] == weight[0]
    if turned:  # every element of the input meets every weight of its channel
        flops = 2 * math.prod(image) * math.prod(weight[1:])
        return call.work(CONVOLUTION, 0, flops, [image, weight, *([out] if out else [])])
    if out is None and turned is not None:
        out = _convolved(image, weight, call.values(stride), call.values(padding), call.values(dilation))
    if out is None:
        return None
    return call.work(CONVOLUTION, 0, 2 * math.prod(out) * math.prod(weight[1:]), [image, weight, out])


def _convolved(image: Shape, weight: Shape, stride: Shape | None, padding: Shape | None,
               dilation: Shape | None) -> Shape | None:
    """The shape that a convolution results in; None when its settings are not told or fit no image."""
    if not (stride and padding and dilation) or min(stride) < 1:
        return None
    out = [image[0], weight[0]]
    for axis in range(len(image) - 2):
        s, p, d = (v[axis] if axis < len(v) else v[-1] for v in (stride, padding, dilation))
        out.append((image[2 + axis] + 2 * p - d * (weight[2 + axis] - 1) - 1) // s + 1)
    return out if min(out) > 0 else None


def _convolution_backward(call: Call, grad: int, image: int, weight: int, transposed: int | None,
                          mask: int) -> Work | None:
    """Each gradient, of the input and of the weight, costs what forward does."""
    shapes = call.shapes(grad, image, weight, least=3)
    if not shapes:
        return None
    out, source, filters = shapes
    wanted = call.gradients
    text = str(call.concrete[mask]) if mask < len(call.concrete) else ""
    if text.startswith("["):
        flags = text.strip("[]").split(",")
        wanted = sum(flag.strip() in ("True", "1", "true") for flag in flags[:2])
    turned = call.flag(transposed) if transposed is not None else False
    forward = 2 * math.prod(source if turned else out) * math.prod(filters[1:])
    count = 2 if wanted is None else wanted
    return call.work(CONVOLUTION, grad, forward * count, [out, source, filters, source, filters])


def _attention(call: Call, causal: int, *, first: int = 0, heads: int = 1, backward: bool = False,
               masks: bool = False, packed: int | None = None) -> Work | None:
    """Scores and their product with the values: [batch, heads, length, width], or with `heads` at axis 2.

    `first`: the argument that is the query. Backward: gradients of query, key, value and scores, and
    the scores again. `masks`: the argument is a number, 0 for no causal mask. `packed`: the argument
    that is given when sequences of several lengths lie one behind the other; then shapes do not tell.
    """
    if packed is not None and call.shape(packed):
        return None
    shapes = call.shapes(first, first + 1, first + 2, least=4)
    if not shapes or any(len(shape) != 4 for shape in shapes):
        return None
    query, key, value = shapes
    length = 3 - heads
    batch, n, rows, width = query[0], query[heads], query[length], query[3]
    columns, deep = key[length], value[3]
    text = str(call.concrete[causal]) if causal < len(call.concrete) else ""
    masked = text not in ("", "0") if masks else text == "True"
    pairs = rows * columns
    short = min(rows, columns)
    seen = short * (short + 1) // 2 + (rows - short) * columns if masked else pairs
    scores, product = 2 * batch * n * width, 2 * batch * n * deep
    moved = [query, key, value, [batch, n, rows, deep]]
    if not backward:
        return call.work(ATTENTION, first, (scores + product) * pairs, moved, (scores + product) * seen)
    model, again = 2 * (scores + product), scores
    return call.work(ATTENTION, first, model * pairs, [*moved, *moved], (model + again) * seen)


Formula = Callable[[Call], Work | None]


def _conv(stride: int, padding: int, dilation: int, **kwargs: Any) -> Formula:
    return lambda call: _convolution(call, stride, padding, dilation, **kwargs)


def _attend(causal: int, **kwargs: Any) -> Formula:
    return lambda call: _attention(call, causal, **kwargs)


# By the operator's arguments, in the order of its schema.
FORMULAS: dict[str, Formula] = {
    "aten::mm": lambda call: _mm(call, 0, 1),
    "aten::_int_mm": lambda call: _mm(call, 0, 1),
    "aten::_scaled_mm": lambda call: _mm(call, 0, 1),
    "aten::addmm": lambda call: _mm(call, 1, 2),
    "aten::addmm_": lambda call: _mm(call, 1, 2),
    "aten::_addmm_activation": lambda call: _mm(call, 1, 2),
    "aten::bmm": lambda call: _bmm(call, 0, 1),
    "aten::baddbmm": lambda call: _bmm(call, 1, 2),
    "aten::baddbmm_": lambda call: _bmm(call, 1, 2),
    "aten::addbmm": lambda call: _bmm(call, 1, 2),
    "aten::mv": _matmul,
    "aten::addmv": lambda call: _matmul(call, 1, 2),
    "aten::addmv_": lambda call: _matmul(call, 1, 2),
    "aten::matmul": _matmul,
    "aten::linear": _linear,
    "aten::mkldnn_linear": _linear,
    **{f"aten::conv{n}d": _conv(3, 4, 5) for n in (1, 2, 3)},
    **{f"aten::conv_transpose{n}d": _conv(3, 4, 7, transposed=True) for n in (1, 2, 3)},
    "aten::convolution": _conv(3, 4, 5, transposed=6),
    "aten::_convolution": _conv(3, 4, 5, transposed=6),
    "aten::convolution_overrideable": _conv(3, 4, 5, transposed=6),
    "aten::cudnn_convolution": _conv(3, 2, 4),
    "aten::cudnn_convolution_relu": _conv(3, 4, 5),
    "aten::miopen_convolution": _conv(4, 3, 5),
    "aten::mkldnn_convolution": _conv(4, 3, 5),
    "aten::cudnn_convolution_transpose": _conv(4, 2, 5, transposed=True),
    "aten::miopen_convolution_transpose": _conv(5, 3, 6, transposed=True),
    "aten::convolution_backward": lambda call: _convolution_backward(call, 0, 1, 2, 7, 10),
    "aten::cudnn_convolution_backward": lambda call: _convolution_backward(call, 1, 0, 2, None, 10),
    "aten::miopen_convolution_backward": lambda call: _convolution_backward(call, 1, 0, 2, None, 9),
    "aten::scaled_dot_product_attention": _attend(5),
    "aten::_scaled_dot_product_flash_attention": _attend(4),
    "aten::_scaled_dot_product_efficient_attention": _attend(6),
    "aten::_scaled_dot_product_cudnn_attention": _attend(6),
    "aten::_scaled_dot_product_attention_math": _attend(5),
    "aten::_scaled_dot_product_fused_attention_overrideable": _attend(5),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attend(4),
    "aten::_flash_attention_forward": _attend(8, heads=2, packed=3),
    "aten::_efficient_attention_forward": _attend(9, heads=2, masks=True, packed=4),
    "aten::_cudnn_attention_forward": _attend(10, packed=4),
    "flash_attn::_flash_attn_forward": _attend(5, heads=2),
    "aten::_scaled_dot_product_flash_attention_backward": _attend(11, first=1, backward=True),
    "aten::_scaled_dot_product_efficient_attention_backward": _attend(11, first=1, backward=True),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attend(14, first=1, backward=True),
    "aten::_flash_attention_backward": _attend(11, first=1, heads=2, backward=True, packed=6),
    "flash_attn::_flash_attn_backward": _attend(11, first=1, heads=2, backward=True),
    "aten::_efficient_attention_backward": _attend(14, first=1, heads=2, backward=True, masks=True,
                                                   packed=6),
}


def work(name: str, call: Call) -> Work | None:
    """What a call of an operator has to do; None when its shapes do not tell, and for other operators."""
    formula = FORMULAS.get(name)
    found = formula(call) if formula else None
    return found if found and max(found.model, found.executed, found.bytes or 0) < MOST else None
