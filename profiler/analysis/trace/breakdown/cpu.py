"""The partition where there is no accelerator: the CPU is the device. Definitions, section 3."""

from __future__ import annotations

from profiler.analysis.trace import intervals
from profiler.analysis.trace.breakdown import classes
from profiler.analysis.trace.breakdown.labels import Track, track
from profiler.analysis.trace.joined import Joined
from profiler.trace.model import Kind


def doings(j: Joined) -> Track:
    """Waiting for the loader, else operators on any thread of the process, else UNKNOWN: the host's."""
    host = j.trace.host
    work = host.kind == Kind.OPERATOR
    return track([(intervals.union(host.start[j.fetch], host.end[j.fetch]), classes.INPUT_WAIT),
                  (intervals.union(host.start[work], host.end[work]), classes.COMPUTE)])
