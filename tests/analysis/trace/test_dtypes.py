"""Spellings of data types, and shapes."""

from __future__ import annotations

import pytest

from profiler.analysis.trace.efficiency import dtypes
from profiler.trace.model import NONE


@pytest.mark.parametrize(("text", "name", "size"), [
    ("float", "fp32", 4), ("Float", "fp32", 4), ("torch.float32", "fp32", 4), ("double", "fp64", 8),
    ("c10::Half", "fp16", 2), ("c10::BFloat16", "bf16", 2), ("BFloat16", "bf16", 2), ("long int", "int64", 8),
    ("Long", "int64", 8), ("unsigned char", "uint8", 1), ("Byte", "uint8", 1), ("signed char", "int8", 1),
    ("c10::Float8_e4m3fn", "fp8", 1), ("c10::complex<float>", "complex64", 8), ("bool", "bool", 1),
    ("Scalar", "", NONE), ("ScalarList", "", NONE), ("TensorList", "", NONE), ("", "", NONE),
])
def test_every_spelling_has_one_name(text: str, name: str, size: int) -> None:
    assert (dtypes.dtype(text), dtypes.size(text)) == (name, size)


@pytest.mark.parametrize(("dims", "types", "size"), [
    ("[[2,3],[4]]", '["float","c10::Half"]', 32), ("[[2,3],[]]", '["float","Scalar"]', 24),
    ("[[]]", '["Scalar"]', NONE), ("[]", "[]", NONE), ("nonsense", "[]", NONE),
    ("[[2,-3]]", '["float"]', NONE), ("[[4611686018427387904]]", '["float"]', NONE),
    ("[[[2,3]]]", '["TensorList"]', NONE), ("[[2,true]]", '["float"]', NONE), ('{"a":1}', "[]", NONE),
])
def test_bytes_of_a_call(dims: str, types: str, size: int) -> None:
    assert dtypes.bytes_of(dims, types) == size
