"""What reads GPUs, all in a process of its own: a library that crashes takes no recording along."""

from __future__ import annotations

from profiler.sources import Source
from profiler.sources.nvml import NvmlSource
from profiler.sources.nvml_slow import NvmlSlowSource
from profiler.sources.tree import TargetTree


def gpu_sources(tree: TargetTree) -> list[list[Source]]:
    """The sources of each vendor. Where the first of a vendor is off, the others have nothing to read."""
    nvml = NvmlSource()
    found: list[list[Source]] = [[nvml, NvmlSlowSource(nvml, tree)]]
    return found
