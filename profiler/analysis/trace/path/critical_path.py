"""The chain of work that set the length of a window: walked backwards, from its end, through device and host.

An activity waited for the last of what it needed: the activity before it on its stream, the
one that its stream was told to wait for, or the call that launched it. A host thread goes
back in time until it waited for the device; there the path goes on with the activity
whose end released it. What the path passes through sums to the window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.trace import intervals
from profiler.analysis.trace.breakdown import classes
from profiler.analysis.trace.breakdown.labels import Labels, track
from profiler.analysis.trace.code.grouping import coded, summed
from profiler.analysis.trace.joined import Joined, take
from profiler.analysis.trace.path.waits import before, releases
from profiler.analysis.trace.steady import DEVICE, Steady
from profiler.analysis.trace.steps import Steps
from profiler.trace.model import NONE, Codes, Ints, Kind, Trace

_WORK = (int(Kind.OPERATOR), int(Kind.RUNTIME), int(Kind.DRIVER))
_NAMES = {classes.COMMUNICATION: "communication", classes.TRANSFER: "transfer"}


@dataclass(frozen=True)
class CriticalPath:
    """n segments in order of time that cover `windows` without gap or overlap. Times are ns."""

    windows: Ints              # int64[k, 2], one for each profiler window
    texts: tuple[str, ...]     # names of the classes
    start: Ints
    end: Ints
    code: Ints                 # class: index into `texts`
    device: Codes              # row of Trace.device that runs, or that is waited to begin; NONE on the host
    host: Codes                # outermost row of Trace.host at work; NONE between rows and on the device

    def __len__(self) -> int:
        return len(self.start)

    def spent(self, windows: Ints | None = None) -> Ints:
        """Length of every segment, ns, within a set of times (int64[n, 2]) or in all."""
        return self.end - self.start if windows is None else \
            intervals.covered(windows, self.start, self.end)

    def total_ns(self, windows: Ints | None = None) -> dict[str, int]:
        """Time on the path by class, longest first, within a set of times (int64[n, 2]) or in all."""
        total = summed(self.code, self.spent(windows), len(self.texts))
        order = np.argsort(-total, kind="stable")
        return {self.texts[code]: int(total[code]) for code in order.tolist() if total[code]}


@dataclass(frozen=True, slots=True)
class Part:
    """Segments of one class with the same kernel, copy, operator or call; "" where none was at work."""

    name: str
    what: str
    count: int
    total_ns: int


def parts(path: CriticalPath, trace: Trace, windows: Ints | None = None) -> tuple[Part, ...]:
    """What the path consists of, longest first, within a set of times (int64[n, 2]) or in all."""
    what = np.where(path.device >= 0, take(trace.device.name, path.device), take(trace.host.name, path.host))
    first, code = coded([path.code, what])
    spent = path.spent(windows)
    count = np.bincount(code[spent > 0], minlength=len(first)).tolist()
    total = summed(code, spent, len(first)).tolist()
    names = [trace.names[code] if code >= 0 else "" for code in what[first].tolist()]
    found = [Part(path.texts[code], names[i], count[i], total[i])
             for i, code in enumerate(path.code[first].tolist()) if count[i]]
    return tuple(sorted(found, key=lambda p: (-p.total_ns, p.name, p.what)))


def critical_path(j: Joined, steps: Steps, steady: Steady, labels: Labels | None = None) -> CriticalPath:
    """Of every profiler window, from its first step to its last one, through every device.

    Where the steps' windows are the device's, or no host work follows its last activity, the walk
    starts there.
    """
    labels = Labels(j, steps) if labels is None else labels
    walk, spans = _Walk(j, labels), []
    for one in np.unique(steps.window).tolist():
        own = steady.windows[(steps.window == one) & (steady.lengths > 0)]
        if len(own):
            spans.append((int(own[:, 0].min()), int(own[:, 1].max())))
            walk.back(*spans[-1], steady.kind == DEVICE)
    return _assembled(walk, labels, np.array(spans, np.int64).reshape(-1, 2))


class _Walk:
    """Collects what the path passes, newest first."""

    def __init__(self, j: Joined, labels: Labels) -> None:
        self.j, self.loop, self.t0 = j, labels.loop, 0
        table, host = j.trace.device, j.trace.host
        self.start, self.end = table.start.tolist(), table.end.tolist()
        self.before = before(j).tolist()
        self.called = np.minimum(np.where(j.launch >= 0, take(host.end, j.launch), table.start),
                                 table.start).tolist()
        self.thread = np.where(j.launch >= 0, take(host.thread, j.launch), labels.loop).tolist()
        self.turns = dict.fromkeys(labels.autograd_threads, labels.loop)  # they work in turn
        self.releases = releases(j)
        chain = np.array([self.turns.get(t, t) for t in self.releases.thread.tolist()], np.int64)
        self.of_chain = {one: np.flatnonzero(chain == one) for one in np.unique(chain).tolist()}
        self.by_end = np.argsort(table.end, kind="stable")
        self.work: list[tuple[int, int, int]] = []   # start, end, device row: it runs
        self.queue: list[tuple[int, int, int]] = []  # start, end, device row: submitted, not begun
        self.host: list[tuple[int, int, int]] = []   # start, end, thread

    def back(self, t0: int, t: int, on_device: bool) -> None:
        """From `t` to `t0`."""
        self.t0 = t0
        row, thread = self._last(t, on_device), self.loop
        left = {chain: len(found) for chain, found in self.of_chain.items()}
        while t > self.t0:
            if row != NONE:
                t, thread = self._device(row, t)
            chain = self.turns.get(thread, thread)
            found = self.of_chain.get(chain, self.by_end[:0])
            # Each release is taken once, so that the walk ends.
            at = min(int(np.searchsorted(self.releases.time[found], t, side="right")), left.get(chain, 0)) - 1
            since = max(int(self.releases.time[found[at]]), self.t0) if at >= 0 else self.t0
            if since < t:
                self.host.append((since, t, chain))
            t, row = since, int(self.releases.row[found[at]]) if at >= 0 else NONE
            left[chain] = at

    def _last(self, t: int, on_device: bool) -> int:
        """The activity that the window ends with; NONE when it ends with host work."""
        at = int(np.searchsorted(np.array(self.end, np.int64)[self.by_end], t, side="right")) - 1
        if at < 0:
            return NONE
        row = int(self.by_end[at])
        host = self.j.trace.host
        after = (host.start < t) & (host.end > self.end[row]) & np.isin(host.kind, _WORK)
        if not on_device and after.any():
            return NONE
        if self.end[row] < t:
            self.host.append((max(self.end[row], self.t0), t, self.loop))
        return row

    def _device(self, row: int, t: int) -> tuple[int, int]:
        """Through activities that waited for each other to a launch: when its call ended, and its thread."""
        thread = self.loop
        while row != NONE and t > self.t0:
            begun = max(self.start[row], self.t0)
            t = min(t, max(self.end[row], self.t0))
            if begun < t:
                self.work.append((begun, t, row))
            t, earlier, thread = min(begun, t), self.before[row], self.thread[row]
            until = max(self.called[row] if earlier == NONE else self.end[earlier], self.t0)
            if until < t:
                self.queue.append((until, t, row))
                t = until
            row = earlier
        return t, thread


def _assembled(walk: _Walk, labels: Labels, windows: Ints) -> CriticalPath:
    """The pieces in order of time, those of the host split by what it did."""
    j = walk.j
    table = j.trace.device
    work, queue = _columns(walk.work), _columns(walk.queue)
    kinds = np.where(j.communication, classes.COMMUNICATION, np.where(
        np.isin(table.kind, (int(Kind.MEMCPY), int(Kind.MEMSET))), classes.TRANSFER, classes.COMPUTE))
    none = np.full(0, NONE, np.int64)
    parts: list[tuple[Ints, ...]] = [
        (work[:, 0], work[:, 1], take(kinds, work[:, 2]), work[:, 2], np.full(len(work), NONE)),
        (queue[:, 0], queue[:, 1], np.full(len(queue), classes.QUEUED), queue[:, 2],
         np.full(len(queue), NONE))]
    host = _columns(walk.host)
    for thread in np.unique(host[:, 2]).tolist():
        own = host[host[:, 2] == thread]
        parts.append(_host(j, labels, own[np.argsort(own[:, 0]), :2], thread))
    start, end, code, device, outer = (np.concatenate([none, *column]) for column in zip(*parts, strict=True))
    keep = np.flatnonzero(end > start)
    order = keep[np.argsort(start[keep], kind="stable")]
    texts = tuple(_NAMES.get(i, text) for i, text in enumerate(labels.texts))
    return CriticalPath(windows, texts, start[order], end[order], code[order],
                        device[order].astype(np.int32), outer[order].astype(np.int32))


def _columns(rows: list[tuple[int, int, int]]) -> Ints:
    return np.array(rows, np.int64).reshape(-1, 3)


def _host(j: Joined, labels: Labels, times: Ints, thread: int) -> tuple[Ints, ...]:
    """Pieces of host time (int64[n, 2], sorted) by class and by the outermost row at work."""
    _, code, times = labels.chain(thread).pieces(times)
    code = np.where(code == classes.UNKNOWN, classes.HOST, code)
    host = j.trace.host
    layers: list[tuple[Ints, Ints | int]] = []
    working = np.isin(host.kind, _WORK)
    for one in (thread, *(labels.autograd_threads if thread == labels.loop else [labels.loop])):
        rows = np.flatnonzero(working & (host.thread == one))
        reach = np.maximum.accumulate(host.end[rows])
        top = rows[np.append(True, host.start[rows][1:] >= reach[:-1])] if len(rows) else rows
        top = top[host.end[top] > host.start[top]]
        layers.append((np.stack((host.start[top], host.end[top]), axis=1), top))
    piece, row, pieces = track(layers).pieces(times)
    return pieces[:, 0], pieces[:, 1], code[piece], np.full(len(piece), NONE), row
