"""Whether the kernels of all launches are there. Definitions, section 3: gpu_data_incomplete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import Flags, Ints

MISSING = 0.01  # share of a step's launches that may lack their kernels


@dataclass(frozen=True)
class Completeness:
    """Launches of kernels and graphs against device activities; rows of the arrays are those of Steps."""

    launches: Ints        # int64[n]
    missing: Ints         # int64[n]: launches that own no device activity
    incomplete: Flags     # gpu_data_incomplete: nothing may be claimed of the device in this step
    unlaunched: int       # device activities whose launch is not in the trace
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """No step is incomplete."""
        return not self.incomplete.any()


def check(j: Joined, steps: Steps) -> Completeness:
    """Launches per step and those without activity; launches recorded into a graph start nothing."""
    host, device = j.trace.host, j.trace.device
    rows = np.flatnonzero(j.kernel_launch & (host.correlation > 0) & ~_captured(j))
    owns = np.zeros(len(host), np.bool_)
    owns[j.launch[j.launch >= 0]] = True
    step = steps.at(host.start[rows])
    inside = step >= 0
    launches = np.bincount(step[inside], minlength=len(steps))
    missing = np.bincount(step[inside & ~owns[rows]], minlength=len(steps))
    incomplete = missing > MISSING * launches
    notes = []
    if len(rows) and not len(device):  # nor is the CPU the device of its other steps
        incomplete[:] = True
        notes.append(f"GPU activity not captured: {len(rows)} launches and no activity of a device")
    elif incomplete.any():
        notes.append(f"GPU data incomplete: in {incomplete.sum()} of {len(steps)} steps more than 1 % of the "
                     f"launches lack their kernels ({missing.sum()} of {launches.sum()})")
    return Completeness(launches, missing, incomplete, int((j.launch < 0).sum()), tuple(notes))


def _captured(j: Joined) -> Flags:
    """Host rows between the begin and the end of a stream capture on their thread."""
    host = j.trace.host
    change = j.host_names(lambda n: 1 if "StreamBeginCapture" in n else -1 if "StreamEndCapture" in n else 0)
    change = np.where(j.is_call & (j.outer_call == np.arange(len(host))), change, 0)
    result = np.zeros(len(host), np.bool_)
    for thread in np.unique(host.thread[change != 0]).tolist():
        rows = np.flatnonzero(host.thread == thread)
        result[rows] = np.cumsum(change[rows]) > 0
    return result
