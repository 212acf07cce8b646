"""One AMD GPU, or one part of a card that is split, as AMD SMI knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiler.model import mapping
from profiler.sources._amd_fields import MIB, generation_of, memory_bytes, needed, number, xgmi_links
from profiler.sources._amd_library import Asked, named, partition
from profiler.sources._fields import CLOCK_BOUND, HIGHEST_POWER_LIMIT, MEMORY_BOUND
from profiler.sources._gpu import Gpu, first, text_of

HIGHEST_NUMBER = 1 << 20  # of lanes, units, devices


class AmdGpu(Gpu):
    """A device of this machine. `properties["vendor"]` is "AMD".

    `part`: number of this part of a split card, 0 for its first part and for a whole card. What is the
    whole card's (power, temperature, clocks, links, errors) is the first part's alone.
    """

    def _properties(self) -> dict[str, Any]:
        asked: Asked = self.handle
        self.part = partition(asked)
        asic = _answer(asked, "amdsmi_get_gpu_asic_info")
        ids = _answer(asked, "amdsmi_get_gpu_enumeration_info")
        found: dict[str, Any] = {
            "vendor": "AMD",
            "gfx_target": named(asic.get("target_graphics_version")),
            "compute_units": _whole(asic.get("num_compute_units")) or None,
            "pci_bus_id": text_of(asked, "amdsmi_get_gpu_device_bdf") or None,
            "hip_uuid": named(ids.get("hip_uuid")), "hip_id": _whole(ids.get("hip_id")),
            "compute_partition": named(text_of(asked, "amdsmi_get_gpu_compute_partition")),
            "memory_partition": named(text_of(asked, "amdsmi_get_gpu_memory_partition")),
            "part": self.part or None,
        }  # fmt: skip
        if not self.part:
            found |= _of_card(asked)
        return {name: value for name, value in found.items() if value is not None}

    def _memory(self) -> tuple[int | None, bool]:
        asked: Asked = self.handle
        return first(MEMORY_BOUND, lambda: int(memory_bytes(asked, "total")),
                     lambda: int(needed(asked("amdsmi_get_gpu_vram_usage"), "vram_total") * MIB)), False


def _of_card(asked: Asked) -> dict[str, Any]:
    cap = _answer(asked, "amdsmi_get_power_cap_info")
    link = _answer(asked, "amdsmi_get_pcie_info")
    fixed, now = mapping(link.get("pcie_static")), mapping(link.get("pcie_metric"))
    return {
        "power_limit_w": watts(cap.get("power_cap")),
        "power_limit_default_w": watts(cap.get("default_power_cap")),
        "max_clock_sm": _highest_clock(asked, "GFX"), "max_clock_mem": _highest_clock(asked, "MEM"),
        "pcie_gen": generation_of(fixed.get("max_pcie_speed")),
        "pcie_width": _whole(fixed.get("max_pcie_width")),
        "pcie_gen_now": generation_of(now.get("pcie_speed")), "pcie_width_now": _whole(now.get("pcie_width")),
        "nvlink_peers": _peers(asked),
    }  # fmt: skip


def watts(cap: Any) -> float | None:
    """A power limit in W: AMD SMI tells uW, its first versions told W. None for none (0)."""
    value = number(cap) or 0.0
    told = value if value <= HIGHEST_POWER_LIMIT else value / 1e6
    return told if 0 < told <= HIGHEST_POWER_LIMIT else None


def torch_uuid(hip_uuid: str) -> str:
    """How torch names what HIP names GPU-0123456789abcdef: its 16 characters as bytes, written in hex."""
    text = hip_uuid.removeprefix("GPU-").encode("ascii", "replace")[:16].ljust(16, b"\0").hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def names_of(gpus: Sequence[AmdGpu]) -> dict[str, AmdGpu]:
    """Every UUID by which one of these is known, to AMD SMI, HIP or torch. Of a name of several, none."""
    found: dict[str, AmdGpu] = {}
    shared: set[str] = set()
    for gpu in gpus:
        hip = str(gpu.properties.get("hip_uuid") or "")
        for name in {gpu.uuid, *((hip, torch_uuid(hip)) if hip.startswith("GPU-") else ())}:
            if name in found:
                shared.add(name)
            found[name] = gpu
    return {name: gpu for name, gpu in found.items() if name not in shared}


def _answer(asked: Asked, name: str) -> dict[str, Any]:
    """The answer; empty where the call fails."""
    try:
        said = asked(name)
    except Exception:
        return {}
    return said if isinstance(said, dict) else {}


def _whole(value: Any) -> int | None:
    told = number(value)
    return int(told) if told is not None and 0 <= told <= HIGHEST_NUMBER else None


def _highest_clock(asked: Asked, which: str) -> Any:
    return first(CLOCK_BOUND, lambda: needed(
        asked("amdsmi_get_clock_info", asked.enum("AmdSmiClkType", which)), "max_clk"))


def _peers(asked: Asked) -> dict[str, int] | None:
    """Bus id of the GPU at the other end -> XGMI links to it; None without any."""
    found: dict[str, int] = {}
    try:
        for link in xgmi_links(asked):
            found[str(link["bdf"])] = found.get(str(link["bdf"]), 0) + 1
    except Exception:
        return None
    return found
