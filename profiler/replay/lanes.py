"""Streams of the replayed steps, numbered, and what has been submitted to them at each event."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from profiler.analysis.trace.joined import Joined
from profiler.replay.events import Events
from profiler.trace.model import NONE, Ints, Kind
from profiler.trace.names import Copy

Row: TypeAlias = tuple[int, int, int, int]  # device, stream, stream waited for, correlation of the record
State: TypeAlias = tuple[list[int], list[int]]  # newest activity of each lane; lanes in order of use

H2D = (int(Copy.H2D), int(Copy.H2D_PAGEABLE), int(Copy.H2D_PINNED))
HISTORY = 8  # event records that a wait of unknown cause is tried against, the newest first


@dataclass(frozen=True)
class Lanes:
    """Streams of all devices, numbered; and the activities of the events, in order of submission."""

    lane: list[int]       # of each activity
    keys: list[tuple[int, int]]  # (device, stream) of each lane
    start: list[int]      # measured, ns
    end: list[int]
    copies: list[bool]    # lanes that hold copies to the device and nothing else

    @classmethod
    def of(cls, j: Joined, events: Events) -> Lanes:
        device = j.trace.device
        rows = events.device[events.submits]
        pairs = np.stack((device.device[rows].astype(np.int64), device.stream[rows]), axis=1)
        keys, lane = np.unique(pairs, axis=0, return_inverse=True)
        lane = lane.reshape(-1)
        only = np.isin(j.copy[rows], H2D) & (device.kind[rows] == Kind.MEMCPY)
        other = np.bincount(lane, ~only, len(keys))
        return cls(lane.tolist(), [(int(d), int(s)) for d, s in keys], device.start[rows].tolist(),
                   device.end[rows].tolist(), (other == 0).tolist())

    @property
    def devices(self) -> dict[int, list[int]]:
        """Lanes of each device, in order of its first."""
        result: dict[int, list[int]] = {}
        for lane, (device, _) in enumerate(self.keys):
            result.setdefault(device, []).append(lane)
        return result

    def number(self, device: int, stream: int) -> int:
        """Lane of a stream; NONE when it holds no activity. Device NONE: any device's."""
        for lane, (d, s) in enumerate(self.keys):
            if s == stream and device in (d, NONE):
                return lane
        return NONE


class Walk:
    """State of one pass over the events."""

    def __init__(self, j: Joined, events: Events, lanes: Lanes) -> None:
        self.lanes = lanes
        n = len(lanes.keys)
        self.last = [NONE] * n            # newest activity on each lane
        self.recent: list[int] = []       # lanes, the one that was submitted to last at the end
        self.fresh = [False] * n          # copy lanes with copies that nothing has waited for yet
        self.records: dict[int, State] = {}  # of event records, by correlation
        self.history: list[State] = []    # the latest of them, the newest at the end
        self.ends: list[list[int]] = [[] for _ in range(n)]  # measured, in order of submission
        self.acts: list[list[int]] = [[] for _ in range(n)]
        self.all: list[list[int]] = [[] for _ in range(n)]
        for act, lane in enumerate(lanes.lane):
            self.all[lane].append(act)
        self.sync = sync_rows(j)
        self.before = submissions(j, lanes)

    def restart(self, time: int) -> None:
        """Begin a step that is not replayed after the one before it: only measured ends are known of that."""
        for lane, (submitted, ends) in enumerate(self.before):
            at = int(np.searchsorted(submitted, time))
            self.ends[lane], self.acts[lane] = ([int(ends[at - 1])], [NONE]) if at else ([], [])
        self.last = [NONE] * len(self.last)
        self.fresh = [False] * len(self.last)
        self.history = []

    def submit(self, act: int) -> None:
        lane = self.lanes.lane[act]
        self.last[lane] = act
        if not self.recent or self.recent[-1] != lane:
            if lane in self.recent:
                self.recent.remove(lane)
            self.recent.append(lane)
        self.fresh[lane] = self.lanes.copies[lane]
        self.ends[lane].append(self.lanes.end[act])
        self.acts[lane].append(act)

    def record(self, correlation: int) -> None:
        state = self.state()
        self.records[correlation] = state
        self.history = [*self.history[1 - HISTORY:], state]

    def state(self) -> State:
        """What has been submitted so far."""
        return list(self.last), list(self.recent)

    def next_start(self, lane: int, act: int) -> int | None:
        """Measured start of the next activity on a lane from activity number `act` on."""
        own = self.all[lane]
        at = bisect_left(own, act)
        return self.lanes.start[own[at]] if at < len(own) else None


def sync_rows(j: Joined) -> dict[int, Row]:
    """Synchronisation rows by correlation."""
    s = j.trace.syncs
    rows = zip(s.device.tolist(), s.stream.tolist(), s.wait_stream.tolist(), s.wait_record.tolist())
    return {c: row for c, row in zip(s.correlation.tolist(), rows) if c > 0}


def submissions(j: Joined, lanes: Lanes) -> list[tuple[Ints, Ints]]:
    """Of every activity of the trace on each lane: when it was submitted (rising), and its measured end."""
    device = j.trace.device
    submitted = np.where(j.launch >= 0, j.trace.host.start[j.launch], device.start)
    result = []
    for number, stream in lanes.keys:
        rows = np.flatnonzero((device.device == number) & (device.stream == stream))
        rows = rows[np.argsort(submitted[rows], kind="stable")]
        result.append((submitted[rows], np.maximum.accumulate(device.end[rows])))
    return result
