"""Work from shapes, held against layers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from profiler.analysis.trace.efficiency.flops import FORMULAS, Call, Work, work

BF16 = ["c10::BFloat16"] * 3


def count(name: str, dims: list[Any], concrete: list[str] | None = None, types: list[str] | None = None,
          **more: Any) -> Work | None:
    return work(name, Call(dims, types or ["float"] * len(dims), concrete or [], **more))


def model(name: str, dims: list[Any], concrete: list[str] | None = None) -> int | None:
    found = count(name, dims, concrete)
    return None if found is None else found.model


@pytest.mark.parametrize(("name", "dims", "flops"), [
    ("aten::mm", [[3, 4], [4, 5]], 2 * 3 * 4 * 5),
    ("aten::addmm", [[5], [3, 4], [4, 5], [], []], 2 * 3 * 4 * 5),
    ("aten::bmm", [[7, 3, 4], [7, 4, 5]], 7 * 2 * 3 * 4 * 5),
    ("aten::baddbmm", [[7, 3, 5], [7, 3, 4], [7, 4, 5], [], []], 7 * 2 * 3 * 4 * 5),
    ("aten::linear", [[2, 3, 4], [5, 4], [5]], 2 * 2 * 3 * 4 * 5),
    ("aten::linear", [[4], [5, 4]], 2 * 4 * 5),
    ("aten::matmul", [[2, 1, 3, 4], [6, 4, 5]], 12 * 2 * 3 * 4 * 5),
    ("aten::matmul", [[4], [4]], 2 * 4),
    ("aten::mv", [[3, 4], [4]], 2 * 3 * 4),
])
def test_matrix_products(name: str, dims: list[Any], flops: int) -> None:
    assert model(name, dims) == flops


@pytest.mark.parametrize(("name", "dims"), [
    ("aten::mm", [[3, 4], [5, 6]]), ("aten::mm", [[3, 4]]), ("aten::mm", [[], []]), ("aten::mm", []),
    ("aten::mm", [["3", 4], [4, 5]]), ("aten::mm", [[3, -4], [-4, 5]]), ("aten::mm", [[0, 4], [4, 5]]),
    ("aten::bmm", [[3, 4], [4, 5]]), ("aten::matmul", [[2, 3, 4], [5, 4, 6]]), ("aten::mm", [3, 4]),
    ("aten::conv2d", [[1, 3, 8, 8], [4, 3, 3, 3]]), ("aten::linear", [[[3, 4]], [5, 4]]),
    ("aten::add", [[3, 4], [3, 4]]), ("aten::mm", [[2**40, 2**40], [2**40, 2**40]]),
])
def test_what_shapes_do_not_tell_is_not_told(name: str, dims: list[Any]) -> None:
    assert count(name, dims) is None


def test_bytes_are_operands_and_result_once() -> None:
    found = count("aten::mm", [[3, 4], [4, 5]], types=BF16)
    assert found is not None and found.bytes == 2 * (12 + 20 + 15) and found.dtype == "bf16"
    silent = count("aten::mm", [[3, 4], [4, 5]], types=["", ""])
    assert silent is not None and silent.bytes is None and silent.dtype == ""


def test_the_first_layer_of_a_resnet() -> None:
    dims = [[32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []]
    settings = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
    assert model("aten::convolution", dims, settings) == 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7
    assert model("aten::cudnn_convolution", dims, ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"]) == \
        model("aten::convolution", dims, settings)
    found = count("aten::convolution", dims, out=[32, 64, 112, 112])
    assert found is not None and found.model == model("aten::convolution", dims, settings)


def test_backward_of_a_convolution_counts_the_gradients_that_are_asked_for() -> None:
    dims = [[32, 64, 112, 112], [32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], [], []]
    forward = 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7
    for mask, times in (("[True, True, False]", 2), ("[False, True, True]", 1), ("[False, False, True]", 0)):
        settings = ["", "", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1", mask]
        assert model("aten::convolution_backward", dims, settings) == times * forward
    old = count("aten::cudnn_convolution_backward", [dims[1], dims[0], dims[2]], gradients=1)
    assert old is not None and old.model == forward


def test_half_of_the_scores_are_worked_out_under_a_causal_mask() -> None:
    query = [2, 8, 64, 32]
    full = count("aten::_scaled_dot_product_flash_attention", [query] * 3, ["", "", "", "0.", "False"])
    causal = count("aten::_scaled_dot_product_flash_attention", [query] * 3, ["", "", "", "0.", "True"])
    assert full is not None and causal is not None
    assert full.model == full.executed == causal.model == 2 * 2 * 8 * 64 * 64 * (32 + 32)
    assert causal.executed == full.model * 65 // 128  # 64 * 65 / 2 of 64 * 64 pairs


def test_a_causal_mask_over_a_wider_or_longer_score_matrix() -> None:
    for rows, columns in ((4, 6), (6, 4)):
        seen = sum(min(row + 1, columns) for row in range(rows))
        found = count("aten::scaled_dot_product_attention", [[1, 1, rows, 8], [1, 1, columns, 8],
                                                              [1, 1, columns, 8]], [""] * 5 + ["True"])
        assert found is not None and found.executed == 2 * seen * (8 + 8)


def test_both_layouts_of_attention_give_the_same() -> None:
    query, key = [2, 8, 64, 32], [2, 8, 48, 32]
    outer = count("aten::_scaled_dot_product_flash_attention", [query, key, key])
    inner = count("aten::_flash_attention_forward", [[2, 64, 8, 32], [2, 48, 8, 32], [2, 48, 8, 32]])
    assert outer is not None and inner is not None and outer.model == inner.model


def test_packed_sequences_do_not_tell_their_lengths() -> None:
    dims = [[1, 640, 8, 64]] * 3 + [[], [5], [5]]
    assert count("aten::_efficient_attention_forward", dims, [""] * 9 + ["0"]) is None
    assert count("aten::_efficient_attention_forward", [[1, 640, 8, 64]] * 3, [""] * 9 + ["0"]) is not None


def test_backward_of_fused_attention_is_twice_forward_and_the_scores_once_more() -> None:
    q = [2, 8, 64, 32]
    forward = count("aten::_scaled_dot_product_flash_attention", [q] * 3)
    backward = count("aten::_scaled_dot_product_flash_attention_backward", [q] * 4)
    assert forward is not None and backward is not None
    assert backward.model == 2 * forward.model
    assert backward.executed == 2 * forward.model + forward.model // 2


def test_every_formula_survives_arguments_that_make_no_sense() -> None:
    shapes: list[Any] = [[], [3], [3, 4], [4, 5, 6], [1, 2, 3, 4], [[1, 2], [3, 4]], ["x"], None, 7]
    for name in FORMULAS:
        for dims in ([], *[[shape] * 5 for shape in shapes], shapes):
            for concrete in ([], ["[0, 0]"] * 15, ["[]"] * 15, ["True"] * 15, ["nonsense"] * 15):
                found = count(name, dims, concrete)
                assert found is None or found.model >= 0
