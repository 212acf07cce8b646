"""What a device's PCI Express link can carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Bytes/s of one lane in one direction, after its line code. What a copy reaches is some 10 to 20 % less.
LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}


def link_rate(properties: Mapping[str, Any]) -> tuple[float, str] | None:
    """(bytes/s, "PCIe 5 x16") of a device by its properties; None where they do not tell.

    The generation is the highest that card and slot have in common: an idle device turns
    its own down, its width stays.
    """
    generation = properties.get("pcie_gen")
    width = properties.get("pcie_width_now") or properties.get("pcie_width")
    if not isinstance(generation, int) or generation not in LANE or not isinstance(width, int) or width <= 0:
        return None
    return LANE[generation] * width, f"PCIe {generation} x{width}"
