"""What reads GPUs, all in a process of its own: a library that crashes takes no recording along."""

from __future__ import annotations

from typing import Any

from profiler.sources import Source, amd, nvml
from profiler.sources._amd_library import alone, worth_asking
from profiler.sources.amd import AmdSource
from profiler.sources.amd_slow import AmdSlowSource
from profiler.sources.nvml import NvmlSource
from profiler.sources.nvml_slow import NvmlSlowSource
from profiler.sources.tree import TargetTree


def gpu_sources(tree: TargetTree) -> list[list[Source]]:
    """The sources of each vendor. Where the first of a vendor is off, the others have nothing to read."""
    found: list[list[Source]] = []
    if not alone():  # where AMD's are the only GPUs, the want of an NVIDIA driver is no news
        fast = NvmlSource()
        found.append([fast, NvmlSlowSource(fast, tree)])
    if worth_asking():
        first = AmdSource()
        found.append([first, AmdSlowSource(first, tree)])
    return found


def describe() -> dict[str, dict[str, Any]]:
    """What each vendor's library tells of this machine now: "nvml", and "amd" where it is worth asking."""
    told = {"nvml": nvml.describe()}
    return {**told, "amd": amd.describe()} if worth_asking() else told
