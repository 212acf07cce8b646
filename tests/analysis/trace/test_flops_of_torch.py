"""Work from shapes, held against torch's own counter."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.trace.test_flops import count, model

torch = pytest.importorskip("torch")


def counted(function: Any) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def meta(*shape: int) -> Any:
    return torch.empty(shape, device="meta")


@pytest.mark.parametrize(("image", "weight", "stride", "padding", "dilation", "groups"), [
    ([4, 3, 32, 33], [8, 3, 3, 3], [1, 1], [0, 0], [1, 1], 1),
    ([4, 8, 32, 33], [16, 2, 5, 3], [2, 3], [2, 1], [1, 2], 4),
    ([4, 8, 64], [8, 1, 3], [2], [1], [1], 8),
    ([1, 2, 9, 10, 11], [4, 2, 2, 2, 2], [1, 2, 1], [0, 1, 0], [1, 1, 2], 1),
])
def test_convolutions_agree_with_torch(image: list[int], weight: list[int], stride: list[int],
                                       padding: list[int], dilation: list[int], groups: int) -> None:
    settings = (stride, padding, dilation, False, [0] * len(stride), groups)
    said = counted(lambda: torch.ops.aten.convolution(meta(*image), meta(*weight), None, *settings))
    texts = ["", "", "", *map(str, settings)]
    assert model("aten::convolution", [image, weight], texts) == said
    result = torch.ops.aten.convolution(meta(*image), meta(*weight), None, *settings)
    back = counted(lambda: torch.ops.aten.convolution_backward(
        result, meta(*image), meta(*weight), None, *settings, [True, True, False]))
    if groups == 1:  # torch's counter takes no account of groups in backward
        assert model("aten::convolution_backward", [list(result.shape), image, weight],
                     ["", "", "", "", *map(str, settings), "[True, True, False]"]) == back


def test_transposed_convolutions_agree_with_torch() -> None:
    image, weight, settings = [4, 8, 16, 16], [8, 3, 4, 4], ([2, 2], [1, 1], [1, 1], True, [0, 0], 1)
    said = counted(lambda: torch.ops.aten.convolution(meta(*image), meta(*weight), None, *settings))
    assert model("aten::convolution", [image, weight], ["", "", "", *map(str, settings)]) == said


@pytest.mark.parametrize(("query", "key", "value"), [
    ([2, 8, 64, 32], [2, 8, 48, 32], [2, 8, 48, 32]), ([1, 4, 17, 16], [1, 4, 17, 16], [1, 4, 17, 16]),
])
def test_attention_agrees_with_torch(query: list[int], key: list[int], value: list[int]) -> None:
    """Forward in both counts; backward with what it executes, as torch counts the scores again."""
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    found = count("aten::_scaled_dot_product_flash_attention", [query, key, value])
    assert found is not None and found.model == sdpa_flop_count(query, key, value)
    out = [*query[:3], value[3]]
    back = count("aten::_scaled_dot_product_flash_attention_backward", [out, query, key, value])
    assert back is not None and back.executed == sdpa_backward_flop_count(out, query, key, value)
