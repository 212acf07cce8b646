"""What ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES leave of a machine's AMD GPUs, as torch sees it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HipCard:
    """A GPU in the driver's order. `hip_uuid`: GPU-0123456789abcdef, or empty; `hip_id`: its number there."""

    uuid: str
    hip_uuid: str = ""
    hip_id: int | None = None


def resolve(cards: Sequence[HipCard], environment: Mapping[str, str]) -> list[str] | None:
    """UUIDs of what HIP shows, in its order; None where HIP's order cannot be told from here.

    The runtime (ROCR) filters first; HIP then chooses among what is left, by HIP_VISIBLE_DEVICES, else by
    CUDA_VISIBLE_DEVICES. What names no device ends a list, and one that is named twice empties HIP's.
    """
    if len(cards) > 1 and len({card.hip_id for card in cards} - {None}) < len(cards):
        return None
    left = sorted(cards, key=lambda card: card.hip_id or 0)
    if (named := environment.get("ROCR_VISIBLE_DEVICES")) is not None:
        left = _chosen(left, named)[0]
    named = environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES"))
    if named is not None:
        left, twice = _chosen(left, named)
        left = [] if twice else left
    return [card.uuid for card in left]


def _chosen(cards: Sequence[HipCard], named: str) -> tuple[list[HipCard], bool]:
    """(those named, in that order and up to the first word that names none, whether one came twice)."""
    found: list[HipCard] = []
    for word in map(str.strip, named.split(",")):
        card = _named(cards, word)
        if card is None:
            break
        if card in found:
            return found, True
        found.append(card)
    return found, False


def _named(cards: Sequence[HipCard], word: str) -> HipCard | None:
    if word.startswith("GPU-"):
        fits = [card for card in cards if card.hip_uuid.lower().startswith(word.lower())]
        return fits[0] if len(fits) == 1 else None
    match = re.match(r"\+?(\d+)", word)
    number = int(match[1]) if match else -1
    return cards[number] if 0 <= number < len(cards) else None
