"""Data types as PyTorch's traces spell them, and the shapes beside them."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from profiler.trace.model import NONE

# Spellings of operators ("float", "c10::BFloat16", "signed char"), of collectives ("Float") and of torch
# itself ("float32"), to one name.
_NAMES = {
    "float": "fp32", "float32": "fp32", "double": "fp64", "float64": "fp64",
    "half": "fp16", "float16": "fp16", "bfloat16": "bf16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8",
    "float8_e8m0fnu": "fp8", "float4_e2m1fn_x2": "fp4",
    "signed char": "int8", "char": "int8", "int8": "int8", "unsigned char": "uint8", "byte": "uint8",
    "uint8": "uint8", "bool": "bool", "short": "int16", "int16": "int16", "int": "int32", "int32": "int32",
    "unsigned int": "uint32", "uint32": "uint32", "unsigned short": "uint16", "uint16": "uint16",
    "long": "int64", "long int": "int64", "int64": "int64", "unsigned long": "uint64", "uint64": "uint64",
    "complexfloat": "complex64", "complex<float>": "complex64", "complexdouble": "complex128",
    "complex<double>": "complex128", "complexhalf": "complex32", "complex<half>": "complex32",
}
_SIZES = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "fp4": 1, "int8": 1, "uint8": 1, "bool": 1,
          "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "complex32": 4,
          "complex64": 8, "complex128": 16}
MOST = 1 << 60  # bytes: the numbers of a damaged file can be any
_PREFIX = re.compile(r"^(c10::|at::|torch\.|const )+")


def dtype(text: str) -> str:
    """fp32, fp16, bf16, fp8, int8, ...; empty for what is no data type of a tensor."""
    return _NAMES.get(_PREFIX.sub("", text.strip().lower()).replace("c10::", ""), "")


def size(text: str) -> int:
    """Bytes of an element; NONE for what is no data type of a tensor."""
    return _SIZES.get(dtype(text), NONE)


def numbers(value: Any) -> list[int] | None:
    """A shape: a list of whole numbers that are not negative; None for anything else."""
    if not isinstance(value, list):
        return None
    shape = [v for v in value if isinstance(v, int) and not isinstance(v, bool) and v >= 0]
    return shape if len(shape) == len(value) else None


def decode(text: str) -> list[Any]:
    """A list as its JSON text; empty when it is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def bytes_of(dims: str, types: str) -> int:
    """Bytes of every tensor of a call, from "Input Dims" and "Input type"; NONE when none can be told."""
    total = NONE
    for shape, name in zip(decode(dims), decode(types), strict=False):
        item, sizes = size(str(name)), numbers(shape)
        if item > 0 and sizes:
            total = max(total, 0) + item * math.prod(sizes)
    return total if total < MOST else NONE
