"""Our reading of CUDA_VISIBLE_DEVICES against that of torch, over random lists.

CUDA's documentation: only what stands before the first invalid entry is visible; a UUID may be cut short
where it stays unique. Known differences:
- An entry that is repeated, with an entry of no device before. Torch empties the list, for it does not know
  yet how many devices there are; by the documentation what follows an invalid entry does not count.
- Blanks around a UUID. Torch takes them for part of it; we do not, as neither does for indices.
- A sign alone. Torch raises ValueError; it is no number, and ends the list.
MIG is not looked at by torch.
"""

from __future__ import annotations

import ast
import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from profiler.visible import Card, resolve

CARDS = [Card(f"GPU-{uuid}", "H100") for uuid in ("aa12-1", "ab34-2", "ab56-3", "cd78-4")]
WORDS = ("0", "1", "2", "3", "4", "9", "-1", "-0", "+1", " 2", "3 ", "\t1", "", " ", "abc", "1gpu", "2.0",
         "0x1", "00", "01", "99999999999999999999", "GPU-aa", "GPU-aa12-1", "GPU-ab", "GPU-ab34",
         "GPU-ab56-3", "GPU-cd", "GPU-zz", "GPU-", "gpu-aa", "GPU-aa12-1x", " GPU-cd", "GPU-aa ")  # fmt: skip

Torch = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def torch() -> Torch:
    """UUIDs of the devices that torch counts where NVML answers. Its source is read, not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    names = ("_parse_visible_devices", "_transform_uuid_to_ordinals")
    module = ast.parse((Path(spec.origin).parent / "cuda" / "__init__.py").read_text("utf-8"))
    module.body = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in names]
    assert len(module.body) == 2
    environment: dict[str, str] = {}
    found: dict[str, Any] = {"os": SimpleNamespace(getenv=environment.get), "cast": cast,
                             "torch": SimpleNamespace(version=SimpleNamespace(hip=None))}
    exec(compile(module, "torch.cuda", "exec", dont_inherit=True), found)

    def of(named: str) -> list[str]:
        environment["CUDA_VISIBLE_DEVICES"] = named
        parsed = found[names[0]]()
        if parsed and isinstance(parsed[0], str):
            parsed = found[names[1]](parsed, [card.uuid for card in CARDS])
        first = next((k for k, number in enumerate(parsed) if number >= len(CARDS)), None)
        return [CARDS[number].uuid for number in parsed[:first]]

    return of


def ours(named: str) -> list[str] | None:
    return resolve(CARDS, {"CUDA_VISIBLE_DEVICES": named})


def without_differences(named: str, torch: Torch) -> str:
    """The list without blanks around UUIDs, ended before the first entry that is no device by itself."""
    words = named.split(",")
    if words[0].startswith("GPU-"):
        words = [word.strip() for word in words]
    first = next((k for k, word in enumerate(words) if not torch(word.strip())), None)
    return ",".join(words[:first])


@pytest.mark.parametrize("seed", range(5))
def test_lists_read_as_torch_reads_them(torch: Torch, seed: int) -> None:
    draw, same = random.Random(seed), 0
    for _ in range(2000):
        named = ",".join(draw.choices(WORDS, k=draw.randrange(1, 5)))
        assert ours(named) == torch(without_differences(named, torch)), named
        same += ours(named) == torch(named)
    assert 1900 < same < 2000  # few lists differ as they stand


@pytest.mark.parametrize(("named", "we", "they"), [
    ("0,9,9", 1, 0), ("0,9,0", 1, 0), ("GPU-aa,GPU-zz,GPU-zz", 1, 0), ("GPU-aa, GPU-cd", 2, 1)])
def test_known_differences_are_still_there(torch: Torch, named: str, we: int, they: int) -> None:
    assert (len(ours(named) or []), len(torch(named))) == (we, they)


def test_a_sign_alone_is_no_number(torch: Torch) -> None:
    assert ours("0,-,1") == [CARDS[0].uuid]
    with pytest.raises(ValueError):
        torch("0,-,1")
