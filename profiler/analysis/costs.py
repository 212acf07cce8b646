"""What a run cost besides time: peak memory, and energy for a sample. Definitions, sections 6 and 8."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from profiler.analysis.facts import Facts
from profiler.analysis.series import BoolArray, FloatArray, IntArray, spacing

if TYPE_CHECKING:
    from profiler.run.reader import Run

COUNTER, POWER = "energy counter", "power over time"
AVERAGED_NS = 1_000_000_000  # what some drivers average power over
GAP = 3.0  # times the usual distance of readings
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
    found = energy(run, facts)
    return found[0] if found and found[1] == COUNTER else None


def energy(run: Run, facts: Facts) -> tuple[float, str] | None:
    """(J per sample or token over the steady steps, how it was measured).

    By the energy counter of the device in use; where there is none that rises, by its power over the real
    intervals between readings. Between two readings both are taken to rise evenly. Left out are steps that
    readings do not enclose, those in which the counter was set back, and those with a gap in the power.
    None where the samples are not known, or the steps are shorter than what a driver averages over.
    """
    steps = facts.steps.select(facts.steady.mask)
    if facts.device is None or not len(steps):
        return None
    for method, metric in ((COUNTER, "gpu.energy"), (POWER, "gpu.power")):
        for track in run.find(metric, device=facts.device.id):
            t_ns, values = run.values(track.id)
            if len(t_ns) < 2:
                continue
            rise, known = _rises(t_ns, values, metric)
            joules = np.concatenate(([0.0], np.cumsum(np.where(known, rise, 0.0))))
            unknown = np.concatenate(([0], np.cumsum(~known)))  # before each reading
            inside = (steps.t0_ns >= t_ns[0]) & (steps.t1_ns <= t_ns[-1])
            first = np.searchsorted(t_ns, steps.t0_ns, side="right") - 1
            last = np.minimum(np.searchsorted(t_ns, steps.t1_ns, side="left"), len(t_ns) - 1)
            inside &= unknown[np.maximum(first, 0)] == unknown[last]
            samples = float(steps.extras["samples"][inside].sum())
            used = float((np.interp(steps.t1_ns[inside], t_ns, joules)
                          - np.interp(steps.t0_ns[inside], t_ns, joules)).sum())
            if samples > 0 and used > 0 and int(steps.wall[inside].sum()) >= AVERAGED_NS:
                return used / samples, method
    return None


def _rises(t_ns: IntArray, values: FloatArray, metric: str) -> tuple[FloatArray, BoolArray]:
    """(J between successive readings, whether that is known)."""
    if metric == "gpu.energy":
        rise = np.diff(values)
        return rise, rise >= 0  # a counter that falls was set back
    apart = np.diff(t_ns)
    return (values[1:] + values[:-1]) / 2 * apart / 1e9, apart <= GAP * spacing(t_ns)
