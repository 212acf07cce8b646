"""What CUDA_VISIBLE_DEVICES leaves of a machine's GPUs, as the CUDA runtime reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NAMES = ("GPU-", "MIG-")


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU in the driver's order, which is that of bus ids. `slices` of MIG: UUID -> its older name."""

    uuid: str
    name: str
    slices: Mapping[str, str] = field(default_factory=dict)


def also_named(uuid: str, properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Names that a program may have for a slice of MIG from CUDA, or that an AMD GPU was told to have.

    CUDA tells a UUID without its kind, that of the slice or, in older versions, that of its card: a process
    sees one slice, so the card's is that of the slice which is shown.
    """
    if not uuid.startswith("MIG-"):
        told = properties.get("also_named")
        return tuple(name for name in told if isinstance(name, str)) if isinstance(told, list) else ()
    parent = properties.get("mig_parent")
    shown = (parent,) if isinstance(parent, str) and properties.get("cuda_visible") else ()
    return (f"GPU-{uuid.removeprefix('MIG-')}", *shown)


def resolve(cards: Sequence[Card], environment: Mapping[str, str]) -> list[str] | None:
    """UUIDs of what CUDA shows, in its order; None where that cannot be told from here.

    Indices count in the order of the fastest first unless CUDA_DEVICE_ORDER is PCI_BUS_ID; which that is,
    is not told, so with different cards they mean nothing here. UUIDs may be cut short where they stay
    unique. What names no device ends the list, and one that is named twice empties it.
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({card.name for card in cards}) < 2
    if named is not None and named.startswith(NAMES):
        return _by_uuid(cards, named)
    if not by_bus and (named is None or _numbers(named, len(cards))):
        return None
    chosen = range(len(cards)) if named is None else _numbers(named, len(cards))
    found = [cards[index] for index in chosen]
    split = [slot for card in found for slot in card.slices]
    return split[:1] or [card.uuid for card in found]  # one slice, and no whole card beside it


def _numbers(named: str, count: int) -> list[int]:
    """As strtol reads them: "1gpu,2" is 1 and 2, "-0" is 0. Ends at what is none or is no device's."""
    found: list[int] = []
    for word in named.split(","):
        match = re.match(r"\s*([+-]?[0-9]+)", word)
        number = int(match[1]) if match else -1
        if number in found:
            return []
        if not 0 <= number < count:
            break
        found.append(number)
    return found


def _by_uuid(cards: Sequence[Card], named: str) -> list[str]:
    every = [*((card.uuid, "") for card in cards if not card.slices),
             *(names for card in cards for names in card.slices.items())]
    found: list[str] = []
    for word in map(str.strip, named.split(",")):
        fits = [uuid for uuid, older in every
                if word.startswith(NAMES) and (uuid.startswith(word) or older == word)]
        if len(fits) != 1:
            break
        if fits[0] in found:
            return []
        if fits[0].startswith("MIG-"):
            return found or fits  # one slice, and nothing beside it
        found.append(fits[0])
    return found
