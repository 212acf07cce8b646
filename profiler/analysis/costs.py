"""What a run cost besides time: peak memory, and energy for a sample. Definitions, sections 6 and 8."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from profiler.analysis.energy import COUNTER
from profiler.analysis.energy_use import energy
from profiler.analysis.facts import Facts

if TYPE_CHECKING:
    from profiler.run.reader import Run

ON_DEVICE, ON_HOST = "allocated by torch on the GPU", "resident memory of the target"


def peak_memory(run: Run) -> tuple[float, str] | None:
    """(bytes, what was measured) at the peak; None when nothing was.

    On a GPU what torch's allocator had given out: over processes the sum, over devices
    the largest. Elsewhere the resident memory of the target's processes, as sampled:
    pages that processes share count in each of them.
    """
    by_device: defaultdict[tuple[int | None, int | None], float] = defaultdict(float)
    for track in run.find("torch.mem_peak"):
        _, values = run.values(track.id)
        if len(values):
            by_device[track.device, track.index] += float(values.max())
    if by_device and max(by_device.values()) > 0:
        return max(by_device.values()), ON_DEVICE
    resident = [run.series(track.id, points=500) for track in run.find("target.mem_rss")]
    peaks = [float(series.high.max()) for series in resident if len(series.high)]
    return (max(peaks), ON_HOST) if peaks else None


def energy_per_sample(run: Run, facts: Facts) -> float | None:
    """J per sample (or token) over the steady steps, by the energy counter alone: to compare with others."""
    found = energy(run, [facts])
    return found.sample_j if found.method == COUNTER else None
